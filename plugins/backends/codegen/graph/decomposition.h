// Composites in terms of simpler nodes.
#pragma once

#include "core/ir/graph.h"

namespace tenon::codegen {

/// Replaces nodes that are neither loop nests nor scatters nor library calls by simpler nodes, as far as the catalogue can. `in_loops`: library
/// calls by loop nests, too, where those give the same.
void decompose_composites(ir::Graph& graph, bool in_loops = false);

}  // namespace tenon::codegen
