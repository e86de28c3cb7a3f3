// Neighbouring points of a kernel that are computed together.
#pragma once

#include "loops/kernel.h"

namespace tenon::llvm_backend {

/// Where a kernel chooses between two formulas by the parity of its last loop (the parts of complex numbers, what was stacked along a last
/// dimension of two), lets one iteration compute both: lanes then run over pairs, and none computes what it does not store.
void pair_points(codegen::Kernel& kernel, codegen::IndexAlgebra& algebra);

}  // namespace tenon::llvm_backend
