// Whether a graph means the same away from the process that made it.
#pragma once

#include <string>

#include "core/ir/graph.h"

namespace tenon::ops {

/// Names the first node, in regions too, whose meaning does not travel with the graph (foreign code, an op that the catalogue does not
/// have and no region explains), with the user's line; empty when all do.
std::string why_not_portable(const ir::Graph& graph);

/// Names the first node, in regions too, that stands for a call which a process has recorded: no file may hold one; empty when none does.
std::string why_not_read(const ir::Graph& graph);

}  // namespace tenon::ops
