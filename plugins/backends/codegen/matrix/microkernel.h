// The inner product of matrix multiplication: a tile of C in registers over the whole of K.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>

#include "core/base/dtype.h"
#include "lower/target.h"

namespace tenon::codegen {

/// Rows and columns of C that stay in registers. The sizes were measured: 6 by 4 vectors with 32 registers, 6 by 2 with 16.
struct TileShape {
  int rows = 0;
  int columns = 0;
};
TileShape tile_shape(const Target& target, DType dtype);
/// The columns of the tile, by lanes of float32 in a vector register.
int tile_columns(unsigned lanes, DType dtype);

/// The generated function: c[0..rows) x [0..columns) = (accumulate ? c : 0) + a * b.
/// `a` has contiguous rows of k elements, `a_stride` apart. Row k of `b` starts at b + k * b_stride and has at least
/// TileShape::columns readable elements. Strides are in elements. 1 <= rows <= TileShape::rows, 1 <= columns <= TileShape::columns.
using MicroKernel = void (*)(const void* a, std::int64_t a_stride, const void* b, std::int64_t b_stride, void* c, std::int64_t c_stride,
                             std::int64_t k, std::int64_t rows, std::int64_t columns, std::int64_t accumulate);

/// Adds the function `name` for float32 or float64.
void emit_microkernel(llvm::Module& module, const Target& target, DType dtype, const std::string& name);

}  // namespace tenon::codegen
