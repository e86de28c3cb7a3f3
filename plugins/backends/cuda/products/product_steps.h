// Products of a plan as kernels.
#pragma once

#include <vector>

#include "fusion/plan.h"

namespace tenon::cuda {

/// What convolutions read through moved channels: it is written as it is read, side by side, for all blocks that read it.
std::vector<ir::ValueId> written_for_products(const ir::Graph& graph);

/// Replaces each step of a plan that is a product by kernels: the sum with what follows it; or parts of the sum, and what adds them up.
/// `rounds`: operands of float32 may be rounded to tf32.
void make_kernels_of_products(codegen::Plan& plan, const ir::Graph& graph, const codegen::Machine& machine, bool rounds);

}  // namespace tenon::cuda
