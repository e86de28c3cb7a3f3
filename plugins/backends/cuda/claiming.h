// Which nodes this backend takes, and in which groups.
#pragma once

#include "core/ir/graph.h"
#include "tenon/backend.h"

namespace tenon::cuda {

/// Claims every node that has code by itself, in groups as large as convexity allows, each on one card.
void claim_nodes(const ir::Graph& graph, Claims& claims, bool tensor_cores);

}  // namespace tenon::cuda
