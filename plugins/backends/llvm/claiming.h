// Which nodes this backend takes, and in which groups.
#pragma once

#include "core/ir/graph.h"
#include "tenon/backend.h"

namespace tenon::llvm_backend {

/// Claims every node with a meaning as loops, scatters, simpler nodes or a kernel of the catalogue, in groups as large as convexity
/// allows. A node whose result size depends on data is a group of its own.
void claim_nodes(const ir::Graph& graph, Claims& claims);

}  // namespace tenon::llvm_backend
