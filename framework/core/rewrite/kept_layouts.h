// How values lie that a forward graph keeps for its backward graph.
#pragma once

#include <span>

#include "core/ir/graph.h"

namespace tenon::rewrite {

/// Lays kept values that are pictures around convolutions with channels last, as whoever computes convolutions over many channels wants them on
/// both sides: another layout would be copied twice. Values whose layout is given stay as they are.
void lay_out_kept(ir::Graph& graph, std::span<const ir::ValueId> kept);

}  // namespace tenon::rewrite
