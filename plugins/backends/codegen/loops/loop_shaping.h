// Turns the loops of a kernel into few and long ones, and chooses the loop that runs over vector lanes.
#pragma once

#include <optional>

#include "loops/kernel.h"

namespace tenon::codegen {

/// Merges adjacent loops that every access steps through as one, merges a short innermost loop into the one before it, and sets
/// `lanes_inside`. `lanes` is the width of a vector register in float32.
void shape_loops(Kernel& kernel, IndexAlgebra& algebra, unsigned lanes);

/// Merges adjacent inner loops that every access steps through as one.
void merge_inner_loops(Kernel& kernel, IndexAlgebra& algebra);

/// The inner loop along which everything that the kernel reads is contiguous or fixed, when that holds neither for the last inner nor for
/// the last outer loop: lanes would gather along both.
std::optional<std::size_t> contiguous_inner_loop(const Kernel& kernel);

}  // namespace tenon::codegen
