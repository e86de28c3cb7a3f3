// The layout of values inside a graph: channels last between convolutions.
#pragma once

#include <vector>

#include "core/ir/graph.h"
#include "machine/machine.h"

namespace tenon::codegen {

/// Lays what convolution networks keep in memory between nodes out with channels last, where its convolutions gain from it. Inputs
/// and outputs stay as they are; so does what library calls and scatters give: what convolutions read of those is copied first.
/// Gives the copies that loop nests read, and which must be in memory for it.
std::vector<ValueId> choose_layouts(ir::Graph& graph, const Machine& machine);

}  // namespace tenon::codegen
