// The graph of a graph's gradients.
#pragma once

#include "core/ir/graph.h"

namespace tenon::rewrite {

/// The gradients of the inputs of a graph, computed anew from its inputs. Inputs of the result: those of `graph`, then for every float
/// output (all kinds, in order) the gradient of it. Outputs: the gradient of every float input, in order; zeros where no output depends
/// on one. Composite ops that have no gradient of their own are expanded. Throws (unsupported) where an op between them has none.
ir::Graph backward_graph(const ir::Graph& graph);

}  // namespace tenon::rewrite
