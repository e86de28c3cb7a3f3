// Kernels that read nothing but a graph's inputs, such as those that lay out weights: they run beside what does not need them.
#pragma once

#include "fusion/plan.h"

namespace tenon::cuda {

/// Moves each such kernel of a plan in front of the product before it. Not further: what it writes is kept until it is read.
void start_early(codegen::Plan& plan, const ir::Graph& graph);

}  // namespace tenon::cuda
