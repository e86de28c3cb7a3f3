// Turns the loops of a kernel into few and long ones, and chooses the loop that runs over vector lanes.
#pragma once

#include "decisions/cpu_schedule.h"

namespace tenon::llvm_backend {

/// Merges adjacent loops that every access steps through as one, merges a short innermost loop into the one before it, and gives the kernel
/// its schedule. `lanes` is the width of a vector register in float32.
void shape_loops(codegen::Kernel& kernel, codegen::IndexAlgebra& algebra, unsigned lanes);

}  // namespace tenon::llvm_backend
