// Complex numbers in graphs: they are moved by the catalogue's ops, and computed with by opaque calls alone.
#pragma once

#include "core/ir/graph.h"

namespace tenon::ops {

/// Whether a node only puts complex elements where they go, and makes them of real ones: what every backend that stores them can run.
/// True for a node without complex values.
bool only_moves_complex(const ir::Graph& graph, ir::NodeId node);

}  // namespace tenon::ops
