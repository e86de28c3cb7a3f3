// What can be come to in a graph from some of its values.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::rewrite {

/// By ValueId: what is reached from `from`, which is, over nodes that read or give what is reached. `over`: the values to which a node leads; it is
/// asked once a node. `takes`: which of these are reached.
std::vector<bool> reached_values(const ir::Graph& graph, std::span<const ir::ValueId> from, const std::function<std::vector<ir::ValueId>(ir::NodeId)>& over,
                                 const std::function<bool(ir::ValueId)>& takes);

}  // namespace tenon::rewrite
