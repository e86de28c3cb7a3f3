// Dead code: removes nodes that nothing reads.
#pragma once

#include "tenon/pass.h"

namespace tenon::cleanup {

/// Removes nodes whose results no output and no living node reads. Stays what has an effect beyond its results: random nodes (they
/// advance the generator), opaque nodes, nodes that may raise. Inputs stay.
void dce(ir::Graph& graph, const PassContext& context);

}  // namespace tenon::cleanup
