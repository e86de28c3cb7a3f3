// Products of a few rows with a matrix that is read once, where it lies.
#pragma once

#include <algorithm>

#include "launch/scratch.h"
#include "matrix_product.h"

namespace tenon::llvm_backend {

/// Rows of a times b whose rows are contiguous: some rows of b are read over many columns before the next ones, so that memory is read
/// in long runs.
template <class T>
class FewRows {
 public:
  FewRows(const MatrixKernel& kernel, const MatrixProduct& product, const T* a, std::int64_t a_row, T* c)
      : kernel_(kernel), p_(product), a_(a), a_row_(a_row), c_(c), width_(kernel.streaming_tile.columns), streams_(streams_of(product)) {}

  /// Panels that are multiplied side by side at most: so much of each row of b is read in one run.
  std::int64_t panels_together() const { return streams_.panels; }

  /// Computes panels of columns, which are whole but of one row.
  void panels(std::int64_t first, std::int64_t last) const {
    const std::int64_t depth = p_.steps * p_.step_depth;
    Scratch memory;
    T* tiles = c_ ? nullptr : static_cast<T*>(memory.take(static_cast<std::size_t>((last - first) * p_.m * width_) * sizeof(T)));
    for (std::int64_t k = 0; k == 0 || k < depth; k += streams_.rows)
      for (std::int64_t panel = first, count = 0; panel < last; panel += count) {
        count = together(panel, last);
        add_rows(panel, count, k, std::min(streams_.rows, depth - k), c_ ? c_ + panel * width_ : tiles + (panel - first) * p_.m * width_, c_ ? p_.c_row : width_);
      }
    for (std::int64_t panel = first; !c_ && panel < last; ++panel)
      p_.kernels->finish({0, p_.m, panel * width_, columns_of(panel), 0, p_.steps}, tiles + (panel - first) * p_.m * width_);
  }

 private:
  /// Rows of b that are read side by side, and panels of them.
  struct Streams {
    std::int64_t rows, panels;
  };

  /// Processors fetch ahead few long runs of memory. From a cache, more rows are fewer calls, and the sums stay nearer.
  static Streams streams_of(const MatrixProduct& p) {
    constexpr std::int64_t kCachedBytes = 8 * 1024 * 1024;
    if (p.n * p.steps * p.step_depth * static_cast<std::int64_t>(sizeof(T)) <= kCachedBytes) return {32, 32};
    return p.m == 1 ? Streams{8, 128} : Streams{16, 64};
  }

  std::int64_t columns_of(std::int64_t panel) const { return std::min(width_, p_.n - panel * width_); }

  /// Panels from `panel` on that one call multiplies.
  std::int64_t together(std::int64_t panel, std::int64_t last) const {
    const std::int64_t wide = kernel_.row_tile.columns / width_;
    return p_.m == 1 && panel + wide <= last && (panel + wide) * width_ <= p_.n ? wide : 1;
  }

  /// Adds the products of `depth` rows of b to panels of c.
  void add_rows(std::int64_t panel, std::int64_t count, std::int64_t k, std::int64_t depth, T* c, std::int64_t c_row) const {
    const std::int64_t height = kernel_.streaming_tile.rows;
    const void* step[1 + kMostRows];
    step[0] = static_cast<const T*>(p_.b) + k * p_.b_row + panel * width_ / (p_.b_halves ? 2 : 1);  // a pair of rows is as long as one of pairs
    if (p_.m == 1) {
      step[1] = a_ + k;
      const std::int64_t columns = std::min(count * width_, p_.n - panel * width_);
      return (count == 1 ? kernel_.row_of_columns : kernel_.row)(step, 1, p_.b_row, c, c_row, 0, depth, 1, columns, added_if(k > 0), nullptr, 0, depth, 0);
    }
    for (std::int64_t r = 0; r < p_.m; r += height) {
      for (std::int64_t i = 0; i < height; ++i) step[1 + i] = a_ + std::min(r + i, p_.m - 1) * a_row_ + k;
      kernel_.streaming(step, 1, p_.b_row, c + r * c_row, c_row, 0, depth, std::min(height, p_.m - r), width_, added_if(k > 0), nullptr, 0, depth, 0);
    }
  }

  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  const T* a_;
  std::int64_t a_row_;
  T* c_;
  std::int64_t width_;
  Streams streams_;
};

}  // namespace tenon::llvm_backend
