// Runs kernels of the GPU target on the CPU: the same emission, a thread of the host for each thread of a block.
#pragma once

#include <span>
#include <vector>

#include "core/ops/reference/reference.h"
#include "golden/ptx_kernels.h"

namespace tenon::ptx_test {

/// Runs a graph, kernel by kernel and block by block. Gives its outputs.
std::vector<ops::HostTensor> run_on_host(const ScheduledGraph& scheduled, std::span<const ops::TensorView> inputs);

}  // namespace tenon::ptx_test
