// Concatenations that begin a longer one, [a], [a, b], [a, b, c] as a dense block makes them: of those that are kept, the longest is enough.
#pragma once

#include <span>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::rewrite {

/// The values without those that begin another one of them, unless the program gets one of the two: they are parts of its memory.
std::vector<ir::ValueId> without_beginnings(const ir::Graph& graph, std::vector<ir::ValueId> kept);

/// Lets what reads a concatenation, among the first nodes, that begins a kept one read a part of that, though the graph computes it later: for whoever
/// takes kept values as given. Returns how many nodes are new; they stand before the nodes of what they replace.
std::size_t read_parts_of_kept(ir::Graph& graph, std::size_t nodes, std::span<const ir::ValueId> kept);

}  // namespace tenon::rewrite
