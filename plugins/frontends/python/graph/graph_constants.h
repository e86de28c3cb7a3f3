// The constants of a graph as libtenon takes them.
#pragma once

#include <memory>
#include <vector>

#include "core/abi/dlpack.h"
#include "core/ir/graph.h"

namespace tenon::python {

/// DLPack tensors over the constants' bytes, which are kept alive as long as this lives.
struct GraphConstants {
  explicit GraphConstants(const ir::Graph& graph);
  GraphConstants(const GraphConstants&) = delete;
  GraphConstants& operator=(const GraphConstants&) = delete;

  std::vector<std::shared_ptr<const void>> owners;
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<DLTensor> tensors;
  std::vector<const DLTensor*> pointers;
};

}  // namespace tenon::python
