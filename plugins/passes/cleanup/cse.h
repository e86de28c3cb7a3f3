// Common subexpressions: computes equal expressions once.
#pragma once

#include "tenon/pass.h"

namespace tenon::cleanup {

/// Makes one node of nodes with the same op, operands, attributes and result types; the first one stays, with its name and location.
/// Random, opaque and control nodes are never merged. Two outputs may become the same value.
void cse(ir::Graph& graph, const PassContext& context);

}  // namespace tenon::cleanup
