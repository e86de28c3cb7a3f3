// Products of a few rows with a matrix that lies transposed: dot products over contiguous memory, so that nothing is packed.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/dtype.h"
#include "isa/target.h"
#include "matrix/microkernel.h"

namespace tenon::llvm_backend {

/// Up to so many rows, a transposed matrix is multiplied by dot products and not packed.
inline constexpr std::int64_t kDotRows = 48;

/// Rows of A and columns of B whose sums stay in registers: 4 by 4 with 32 registers, 2 by 4 with 16.
TileShape dot_shape(const Target& target);
/// One row, and more columns.
TileShape dot_row_shape();

/// The generated function: c[i * c_stride + j] = (accumulate ? c : 0) + sum over k of a[i][k] * b[j][k], for i < rows and j < columns.
/// `a` points to the addresses of as many rows, `b` to those of as many columns as the shape has, all of them readable; those past `rows`
/// and `columns` are read and left out. Each is contiguous.
using DotKernel = void (*)(const void* const* a, const void* const* b, void* c, std::int64_t c_stride, std::int64_t k, std::int64_t rows, std::int64_t columns,
                           std::int64_t accumulate);

/// The same for columns of B and rows of A that lie in so many runs of k elements: each of `count` steps has 1 + rows addresses, that of its columns, one
/// `b_column` elements behind the other, and those of its rows.
using WindowDotKernel = void (*)(const void* const* steps, std::int64_t count, void* c, std::int64_t c_stride, std::int64_t k, std::int64_t rows, std::int64_t columns,
                                 std::int64_t b_column);

/// Up to so many columns, what lies in windows is multiplied by dot products: a tile of vectors along columns would be mostly empty.
inline constexpr std::int64_t kDotColumns = 16;

/// Adds a WindowDotKernel for float32 or float64, of dot_shape.
void emit_window_dots(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, const std::string& name);

/// Adds the function `name` for float32, float64 or pairs of bfloat16, with one of these shapes. With `of_b` in half precision, columns of B are read as such and
/// multiplied in float32 with rows of A that are float32.
void emit_dot_kernel(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, const std::string& name, std::optional<DType> of_b = {});

}  // namespace tenon::llvm_backend
