// Normal forms: writes what can be written in several ways in one way, so that later passes and backends meet fewer forms.
#pragma once

#include "tenon/pass.h"

namespace tenon::canonical {

/// Puts a graph and its regions into normal form:
/// - operands of commutative ops: first defined first, literals last;
/// - a tensor of one known value that a pointwise op broadcasts is a literal; an operand that it would broadcast anyway is not expanded;
/// - chains of views of one kind are one view, and views that change nothing are none; copies are none;
/// - a cast of a cast that lost nothing is one cast.
/// Results keep their bits; the payload and sign of a NaN may differ.
void canonical(ir::Graph& graph, const PassContext& context);

}  // namespace tenon::canonical
