// Sums over windows, several results at once: they share what their windows have in common, and their weights.
#pragma once

#include "loops/kernel.h"

namespace tenon::llvm_backend {

/// Unrolls the last inner loop of a sum of products over short windows, and computes results that lie beside each other along an outer loop together: what several of them
/// load is loaded once, and whether it is padding is asked once. `lanes`: of float32 in a vector register. Leaves other kernels as they are, and those whose lanes run inside.
void tile_windows(codegen::Kernel& kernel, codegen::IndexAlgebra& algebra, unsigned lanes);

}  // namespace tenon::llvm_backend
