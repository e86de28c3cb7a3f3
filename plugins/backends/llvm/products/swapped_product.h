// Few rows times a transposed matrix on tile registers: the transposed product, whose left operand is the matrix where it lies.
#pragma once

#include <algorithm>

#include "launch/scratch.h"
#include "matrix_product.h"
#include "panels.h"

namespace tenon::llvm_backend {

/// c = a * b as the transposed of b^T * a^T: nothing of b is packed, whose columns are contiguous. Called on many threads at once.
template <class T>
class SwappedProduct {
 public:
  /// Rows of `a` are contiguous, `a_row` apart. Packs them to `memory`, which outlives this.
  SwappedProduct(const MatrixKernel& kernel, const MatrixProduct& product, const T* a, std::int64_t a_row, std::int64_t pass, Scratch& memory)
      : kernel_(kernel), swapped_(swapped(product, a, a_row)), panels_(kernel, swapped_), depth_(swapped_.steps), pass_(pass) {
    packed_ = static_cast<T*>(memory.take(static_cast<std::size_t>(panels_.count() * panels_.elements()) * sizeof(T)));
    for (std::int64_t panel = 0; panel < panels_.count(); ++panel) panels_.pack(panel, packed_ + panel * panels_.elements());
  }

  /// Computes rows [row, end), where `row` is a multiple of a panel's, and columns of c, whose first is `column`.
  void compute(std::int64_t row, std::int64_t end, std::int64_t column, std::int64_t columns, T* c, std::int64_t c_row) const {
    const std::int64_t width = kernel_.tile.columns, height = kernel_.tile.rows;
    for (; row < end; row += width, c += width * c_row)
      for (std::int64_t j = 0; j < columns; j += height)
        square(row, std::min(width, end - row), column + j, std::min(height, columns - j), c + j, c_row);
  }

 private:
  static MatrixProduct swapped(const MatrixProduct& p, const T* a, std::int64_t a_row) {
    MatrixProduct made;
    made.m = p.n, made.n = p.m, made.steps = p.steps * p.step_depth;
    made.a = p.b, made.a_row = p.b_column, made.a_column = 1;
    made.b = a, made.b_row = 1, made.b_column = a_row;
    return made;
  }

  void square(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, T* c, std::int64_t c_row) const {
    constexpr std::int64_t kStride = kAmxTile.columns;
    alignas(64) T sums[kAmxTile.rows * kStride];
    const void* step[1 + kMostRows];
    const std::int64_t width = kernel_.tile.columns;
    const T* const packed = packed_ + row / width * panels_.elements();
    const T* const lying = static_cast<const T*>(swapped_.a) + column * swapped_.a_row;
    for (std::int64_t k = 0; k == 0 || k < depth_; k += pass_) {
      const std::int64_t length = std::min(pass_, depth_ - k);
      step[0] = packed + k * width;
      for (std::int64_t i = 0; i < kernel_.tile.rows; ++i) step[1 + i] = lying + std::min(i, columns - 1) * swapped_.a_row + k;
      kernel_.plain(step, 1, width, sums, kStride, 0, length, columns, rows, added_if(k > 0), nullptr, 0, length, 0);
    }
    kernel_.transpose(sums, kStride, c, c_row, columns, rows);
  }

  const MatrixKernel& kernel_;
  const MatrixProduct swapped_;
  Panels<T> panels_;
  std::int64_t depth_, pass_;
  T* packed_ = nullptr;
};

}  // namespace tenon::llvm_backend
