// Values that lie between groups of a device, or are computed again where they are read.
#pragma once

#include <cstdint>
#include <span>

#include "core/ir/graph.h"
#include "host/partition/assignment.h"

namespace tenon::host {

/// A value that one group computes and a much later one reads takes memory in all steps between. Lets the later group compute it again where it is
/// computed element by element from what is there anyway, or takes less. `sizes`: by symbol, those to expect. True where the graph has
/// changed: its nodes are without an assignment then. A reshape of what is there anyway becomes one for each reader of other backends.
bool compute_again_in_later_groups(ir::Graph& graph, const Assignment& assignment, std::span<const std::int64_t> sizes);

}  // namespace tenon::host
