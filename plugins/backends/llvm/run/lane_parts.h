// Catalogue kernels that take the lanes along one dimension one by one, on several threads.
#pragma once

#include "core/ops/reference/reference.h"
#include "tenon/host_services.h"

namespace tenon::llvm_backend {

/// Runs a node whose op has a written-out kernel; parts of the tensors at once where the op lets that be and it pays.
void run_in_parts(const HostServices& host, const ir::Graph& graph, NodeId node, const ops::NodeRun& run);

}  // namespace tenon::llvm_backend
