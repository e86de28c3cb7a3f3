// Runs kernels of the GPU target on the CPU: the same emission, a thread of the host for each thread of a block.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/ops/reference/reference.h"
#include "golden/ptx_kernels.h"

namespace tenon::ptx_test {

/// Runs a graph, kernel by kernel and block by block. Gives its outputs.
std::vector<ops::HostTensor> run_on_host(const ScheduledGraph& scheduled, std::span<const ops::TensorView> inputs);
/// What differs in what that gives from the judge, or "". `tolerance` in those of the dtype.
std::string fault_on_host(const ScheduledGraph& scheduled, const ir::Graph& graph, std::span<const ops::TensorView> inputs, double tolerance);

}  // namespace tenon::ptx_test
