// Compares a graph before and after passes.
#pragma once

#include <cstddef>
#include <string>

#include "core/ir/graph.h"

namespace tenon::host {

/// Nodes that are in one graph only: by op, operands, attributes and results, names standing for values.
std::size_t count_changes(const ir::Graph& before, const ir::Graph& after);

/// What a pass must leave alone: number, types and order of inputs; number, kinds, targets and types of outputs; symbols. Says what
/// differs; empty when nothing does.
std::string broken_promise(const ir::Graph& before, const ir::Graph& after);

}  // namespace tenon::host
