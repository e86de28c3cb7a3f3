// The inner product of matrix multiplication where the elements of a sum lie side by side in both operands: each of its steps adds the outer
// product of a run of A and a run of B. Neither is packed.
#pragma once

#include <cstdint>

#include "matrix/microkernel.h"

namespace tenon::llvm_backend {

/// Where the runs of one step start, in elements from `a` and `b`.
struct OuterStep {
  std::int64_t a = 0, b = 0;
};

/// The generated function: c[0..rows) x [0..columns) = the sum over `count` steps of a[step.a + row] * b[step.b + column], left out or added to
/// what C holds. `rows` and `columns` are at least 1 and at most the tile's; runs of a have `rows` elements, and those of b as many as the tile
/// has columns, or `columns` where it is emitted to read no more. Sums run in the order of the steps.
using OuterKernel = void (*)(const OuterStep* steps, std::int64_t count, const void* a, void* c, std::int64_t c_stride, const void* b, std::int64_t unused, std::int64_t rows,
                             std::int64_t columns, Before before);

/// Adds the function `name` for float32 or float64.
void emit_outer_kernel(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, const std::string& name, Reads reads);

}  // namespace tenon::llvm_backend
