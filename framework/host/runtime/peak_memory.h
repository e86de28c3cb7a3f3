// What running a graph node by node would hold in memory: what a plan is compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ir/graph.h"

namespace tenon::host {

/// The most bytes that a run of a plan holds beside inputs and constants, and that running its graph node by node would hold.
struct PeakMemory {
  std::size_t planned = 0, unfused = 0;
};

/// The most bytes that results of nodes hold at a time when every node runs by itself, in the order of the graph, with memory of its own
/// that is freed after its last use, as eager execution does. Views share the memory of what they view; outputs stay; inputs and
/// constants are not counted, nor results whose size depends on data. `symbols` by SymbolId, -1 for those that are not known.
std::size_t unfused_peak(const ir::Graph& graph, std::span<const std::int64_t> symbols);

}  // namespace tenon::host
