// Attention of a plan as kernels: two products with the softmax of rows between them.
#pragma once

#include "fusion/plan.h"

namespace tenon::cuda {

/// Makes a kernel of each chain of two products that one can be made of (`Attended`), and the three steps that it stands for of the others. `rounds`: operands
/// of float32 are rounded to tf32.
void make_attention_kernels(codegen::Plan& plan, const ir::Graph& graph, const codegen::Machine& machine, bool rounds);

}  // namespace tenon::cuda
