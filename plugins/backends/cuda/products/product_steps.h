// Products of a plan as kernels.
#pragma once

#include <vector>

#include "fusion/plan.h"

namespace tenon::cuda {

/// What convolutions read through moved channels: it is written as it is read, side by side, for all blocks that read it. And what moves the
/// channels of their results to the end: who reads these reads them so.
std::vector<ir::ValueId> written_for_products(const ir::Graph& graph);

/// Which operands of float32 are rounded to tf32.
struct Rounding {
  bool products = false;      // of matrices
  bool convolutions = false;  // and of their gradients
};

/// What products are made for.
struct ProductChoices {
  Rounding rounding{};
  bool clusters = false;    // blocks may share a rectangle of the result
  bool warpgroups = false;  // four warps may multiply together
};

/// Replaces each step of a plan that is a product by kernels: the sum with what follows it; or parts of the sum, and what adds them up. What only products
/// read that round it is rounded by who writes it.
void make_kernels_of_products(codegen::Plan& plan, const ir::Graph& graph, const codegen::Machine& machine, const ProductChoices& choices);

}  // namespace tenon::cuda
