// Complex numbers in graphs: the catalogue's ops move them, put them together and take them apart. What is computed of them is computed of
// their parts, or by opaque calls.
#pragma once

#include "core/ir/graph.h"

namespace tenon::ops {

/// Whether a node only puts complex elements where they go, makes them of real ones, and real ones of them.
/// True for a node without complex values.
bool only_moves_complex(const ir::Graph& graph, ir::NodeId node);

}  // namespace tenon::ops
