// A graph as the kit hands it to a backend: its buffer, and its constants as DLPack tensors at an offset.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "core/abi/plugin.h"
#include "core/ir/graph.h"
#include "test_memory.h"

namespace tenon::conformance {

class TestGraph {
 public:
  /// `graph` is one of the host; what crosses is on the device.
  TestGraph(const DeviceUnderTest& device, ir::Graph graph);
  explicit TestGraph(ir::Graph graph) : TestGraph(DeviceUnderTest::host(), std::move(graph)) {}
  TestGraph(const TestGraph&) = delete;
  TestGraph& operator=(const TestGraph&) = delete;

  const ir::Graph& graph() const { return graph_; }
  const DeviceUnderTest& device() const { return device_; }
  std::size_t node_count() const { return graph_.nodes().size(); }
  /// What crosses. It borrows from this object.
  TenonGraph crossing() const;

  /// The symbols' values by SymbolId, from the shapes of the inputs; kUnbound for those that the data decide.
  std::vector<std::int64_t> bind(const std::vector<std::vector<std::int64_t>>& input_shapes) const;
  static constexpr std::int64_t kUnbound = -1;

 private:
  struct ConstantTensor {
    TestMemory memory;
    std::vector<std::int64_t> shape;
    DLTensor tensor;
  };

  void add_constant(const ir::Constant& constant);

  const DeviceUnderTest& device_;
  ir::Graph graph_;
  std::vector<std::uint8_t> buffer_;
  std::deque<ConstantTensor> constants_;
  std::vector<const DLTensor*> constant_pointers_;
};

/// The sizes of a type for these symbol values; nothing when one of its symbols is unbound.
std::optional<std::vector<std::int64_t>> sizes_of(const ir::Type& type, const std::vector<std::int64_t>& symbols);

}  // namespace tenon::conformance
