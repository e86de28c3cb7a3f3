// Which values are linear in others.
#pragma once

#include <span>

#include "core/ir/graph.h"

namespace tenon::ops {

/// Whether values are linear in `of`: made of them by being scaled, moved, chosen by something else and added up, with nothing added. No where
/// that is not known.
bool are_linear(const ir::Graph& graph, std::span<const ir::ValueId> values, std::span<const ir::ValueId> of);

}  // namespace tenon::ops
