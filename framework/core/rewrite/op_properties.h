// Properties of ops that follow from their bodies, so that nobody has to list them.
#pragma once

#include "core/ir/graph.h"

namespace tenon::rewrite {

/// True for a pointwise node of two operands whose body gives the same program with them exchanged (add, maximum, logical_and, …).
/// `a + b` and `b + a` then have the same bits, the payloads of NaNs aside.
bool commutes(const ir::Graph& graph, const ir::Node& node);

/// True for a node whose op is pointwise: it broadcasts its operands.
bool is_pointwise(const ir::Node& node);

}  // namespace tenon::rewrite
