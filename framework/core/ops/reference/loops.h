// Runs loop nests and scatters over tensors in host memory.
#pragma once

#include "core/ops/reference/reference.h"

namespace tenon::ops::reference {

void run_loop(const LoopBody& body, const NodeRun& run);
void run_scatter(const ScatterBody& body, const NodeRun& run);

/// Copies a tensor into another of the same shape, converting.
void copy_tensor(const TensorView& from, TensorView& to);

}  // namespace tenon::ops::reference
