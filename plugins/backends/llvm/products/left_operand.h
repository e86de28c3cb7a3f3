// The left operand of a product as microkernels read it: rows of contiguous elements.
#pragma once

#include <algorithm>
#include <cstring>

#include "launch/scratch.h"
#include "matrix_product.h"

namespace tenon::llvm_backend {

template <class T>
class LeftOperand {
 public:
  /// `read_again`: many rows are read for many panels.
  LeftOperand(const MatrixKernel& kernel, const MatrixProduct& product, bool read_again) : kernel_(kernel), p_(product), depth_(product.steps * product.step_depth), read_again_(read_again) {}

  /// True when its rows can be read where they lie.
  bool in_place() const { return p_.a && (p_.a_column == 1 || depth_ <= 1) && !far_rows(); }

  /// Elements from row to row, where it lies or is packed.
  std::int64_t row_stride() const {
    constexpr std::int64_t kLine = 64 / sizeof(T);
    if (in_place() || p_.windows) return p_.a_row;
    return p_.a && depth_ % (16 * kLine) == 0 ? depth_ + kLine : depth_;  // rows a power of two apart crowd like those pages apart
  }

  /// Writes its rows to memory; `each` runs a body over the parts of a range of tasks.
  template <class Each>
  T* pack(Scratch& memory, Each each) const {
    const std::int64_t block = is_transposed() ? 64 : 16;
    T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>(p_.m * row_stride()) * sizeof(T)));
    each((p_.m + block - 1) / block, [&](std::int64_t low, std::int64_t high) {
      const std::int64_t first = low * block, last = std::min(p_.m, high * block);
      if (!p_.a) p_.kernels->pack_rows({first, last - first, 0, 0, 0, p_.steps}, packed + first * depth_);
      else for (std::int64_t i = first; i < last; i += block) copy_rows(i, std::min(last, i + block), packed);
    });
    return packed;
  }

 private:
  /// Rows that are whole pages apart and read again for many panels would crowd into few sets of the caches.
  bool far_rows() const {
    constexpr std::int64_t kPage = 4096 / sizeof(T);
    return p_.a_row >= kPage && p_.a_row % kPage == 0 && read_again_;
  }

  /// True when the elements of a column lie side by side: those of many rows are then read together, or each line of a page would be far from the last.
  bool is_transposed() const { return p_.a_row == 1 && p_.a_column != 1; }

  void copy_rows(std::int64_t first, std::int64_t last, T* packed) const {
    const T* from = static_cast<const T*>(p_.a);
    const std::int64_t stride = row_stride();
    if (p_.a_column == 1) {
      for (std::int64_t i = first; i < last; ++i) std::memcpy(packed + i * stride, from + i * p_.a_row, static_cast<std::size_t>(depth_) * sizeof(T));
      return;
    }
    if (is_transposed()) return kernel_.transpose(from + first, p_.a_column, packed + first * stride, stride, depth_, last - first);
    for (std::int64_t k = 0; k < depth_; ++k)
      for (std::int64_t i = first; i < last; ++i) packed[i * stride + k] = from[i * p_.a_row + k * p_.a_column];
  }

  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  std::int64_t depth_;
  bool read_again_;
};

}  // namespace tenon::llvm_backend
