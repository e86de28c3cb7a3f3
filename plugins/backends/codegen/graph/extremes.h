// Largest elements of windows that are asked for with their places, too: both are found together.
#pragma once

#include "core/ir/graph.h"

namespace tenon::codegen {

/// The gradient of a pool asks where its largest elements are, which finds the elements once more: one node gives both.
void share_extremes(ir::Graph& graph);

}  // namespace tenon::codegen
