// Nodes that compute nothing: they read their operands at other places.
#pragma once

#include "core/ir/graph.h"
#include "core/ops/loop_body.h"

namespace tenon::ops {

/// True when every element is read as it is: of a view, a broadcast, a gather, a copy. Index arithmetic does not count.
bool is_view(const LoopBody& body);

/// True for a node of one tensor whose result is that tensor's elements, each at most moved: one that eager execution may alias.
bool is_view(const ir::Graph& graph, NodeId node);

}  // namespace tenon::ops
