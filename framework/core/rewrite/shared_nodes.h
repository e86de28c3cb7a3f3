// What several nodes compute alike is computed once.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "core/ir/graph.h"

namespace tenon::rewrite {

/// What is computed twice by gradients, or by them and the forward, is computed once: gradients of functions are written in what these compute. The
/// first `forward` nodes stay as they are; `gradients` are values of the graph.
void share_nodes(ir::Graph& graph, std::size_t forward, std::span<std::optional<ir::ValueId>> gradients);

}  // namespace tenon::rewrite
