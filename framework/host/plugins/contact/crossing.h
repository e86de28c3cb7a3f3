// A graph on its way to a plugin: the buffer, and its constants as DLPack tensors at fixed addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/abi/dlpack_types.h"
#include "core/abi/plugin.h"
#include "core/ir/graph.h"

namespace tenon::host {

/// A DLPack dtype in words, for messages: "float32", "uint16", "bfloat16", "bool".
std::string name_of(DLDataType dtype);

/// A DLTensor for each constant that crosses. Addresses stay fixed for the life of the store; equal constants share one.
class ConstantStore {
 public:
  const DLTensor* tensor(const ir::Constant& constant);

 private:
  struct Entry {
    DLTensor tensor;
    std::vector<std::int64_t> shape;
    std::shared_ptr<const void> owner;
  };
  std::mutex mutex_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

/// What a plugin gets of a graph. Alive as long as the plugin may look at it.
class Crossing {
 public:
  /// `origins` by NodeId: the node's id in the graph that this one was cut from; empty for none.
  Crossing(const ir::Graph& graph, ConstantStore& constants, std::span<const std::uint32_t> origins = {});
  Crossing(Crossing&&) = delete;

  const TenonGraph& graph() const { return graph_; }
  TenonBytes bytes() const { return graph_.buffer; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<const DLTensor*> constants_;
  TenonGraph graph_{};
};

}  // namespace tenon::host
