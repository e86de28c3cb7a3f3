// Rows that a kernel keeps: what several sweeps over the inner loops compute is computed in the first and read back in the others.
#pragma once

#include <functional>
#include <string>

#include "loops/kernel.h"

namespace tenon::llvm_backend {

/// Adds row buffers to a kernel with lanes inside, for its loops as they are now. `worth` decides whether a value that costs `operations` at each
/// point is kept for the sweeps that need it again, as a row of `bytes`, when `kept` bytes are kept already.
void keep_rows(codegen::Kernel& kernel, const codegen::IndexAlgebra& algebra, const std::function<bool(double operations, double bytes, double kept)>& worth);

}  // namespace tenon::llvm_backend
