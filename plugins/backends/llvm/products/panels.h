// The right operand of a product in panels: as wide as the microkernel's tile, one row for each element of the sum, in the order in which
// they are multiplied: memory is then read from its start to its end.
#pragma once

#include <algorithm>
#include <cstring>

#include "matrix_product.h"

namespace tenon::llvm_backend {

/// Packs the panels of one product. Called on many threads at once.
template <class T>
class Panels {
 public:
  Panels(const MatrixKernel& kernel, const MatrixProduct& product) : kernel_(kernel), p_(product), width_(kernel.tile.columns), depth_(product.steps * product.step_depth), pass_(elements_of_pass(kernel, product)) {}

  /// Elements of each step that are multiplied at all steps before the next ones. Beside windows these are blocks of channels, in the order
  /// of oneDNN's direct convolutions. Runs over several pixels are of few channels, and stay whole.
  static std::int64_t elements_of_pass(const MatrixKernel& kernel, const MatrixProduct& p) {
    if (p.steps == 1) return even_pass(p.step_depth, kDepth);
    return p.windows && p.b && !kernel.in_tile_registers() ? kernel.block_channels(p) : std::max<std::int64_t>(1, p.step_depth);
  }

  /// The row of a panel for the first element of a pass at one of the steps.
  static std::int64_t row_of(const MatrixProduct& p, std::int64_t pass, std::int64_t step, std::int64_t first) {
    return first * p.steps + step * std::min(pass, p.step_depth - first);
  }

  std::int64_t count() const { return (p_.n + width_ - 1) / width_; }
  std::int64_t elements() const { return depth_ * width_; }

  /// True where the panel is read where it lies.
  bool reads_in_place(std::int64_t panel) const {
    return p_.b && !p_.windows && p_.b_column == 1 && p_.m < kFewRows && (panel + 1) * width_ <= p_.n;
  }

  /// True where a vector is multiplied with rows of b that are read where they lie, each no further than its last column.
  bool reads_one_row() const { return p_.b && !p_.windows && p_.b_column == 1 && p_.m == 1; }

  /// Packs the whole panel.
  void pack(std::int64_t panel, T* packed) const {
    if (kernel_.multiplies_by_dots(p_)) return pack_for_dots(packed);
    if (p_.windows && p_.b) pack_columns(panel, 0, width_, packed);
    else pack_steps(panel, 0, p_.steps, packed);
  }

  /// Writes the rows of the panel from `step` on; columns past the last one are zero.
  void pack_steps(std::int64_t panel, std::int64_t step, std::int64_t steps, T* packed) const {
    const std::int64_t column = panel * width_, columns = std::min(width_, p_.n - column);
    const std::int64_t first = step * p_.step_depth, depth = steps * p_.step_depth;
    if (columns < width_) std::fill(packed, packed + depth * width_, T{0});
    if (!p_.b) return p_.kernels->pack_columns({0, 0, column, columns, step, steps}, packed);
    if (p_.b_halves) return kernel_.pairing(static_cast<const std::uint16_t*>(p_.b) + column + 2 * first * p_.b_row, p_.b_row, packed, width_, depth, columns);
    const T* from = static_cast<const T*>(p_.b) + column * p_.b_column + first * p_.b_row;
    if (lies_transposed()) return transpose(from, columns, depth, packed);
    for (std::int64_t k = 0; k < depth; ++k) {
      if (p_.b_column == 1) std::memcpy(packed + k * width_, from + k * p_.b_row, static_cast<std::size_t>(columns) * sizeof(T));
      else for (std::int64_t j = 0; j < columns; ++j) packed[k * width_ + j] = from[j * p_.b_column + k * p_.b_row];
    }
  }

  /// Packs all panels from `first` on, one after the other; `each` runs a body over the parts of a range of tasks.
  template <class Each>
  void pack_from(std::int64_t first, std::int64_t threads, T* packed, Each each) const {
    if (kernel_.multiplies_by_dots(p_)) return pack_for_dots(packed);
    const bool by_columns = (p_.windows && p_.b) || lies_transposed();
    const std::int64_t lanes = kernel_.transposed_rows;
    const std::int64_t parts = by_columns ? width_ / lanes : std::max<std::int64_t>(1, std::min(p_.steps, 4 * threads));
    const std::int64_t part = (p_.steps + parts - 1) / parts;
    each((count() - first) * parts, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t task = low; task < high; ++task) {
        const std::int64_t panel = first + task / parts, number = task % parts, step = number * part;
        T* to = packed + (panel - first) * elements();
        if (by_columns) pack_columns(panel, number * lanes, (number + 1) * lanes, to);
        else if (step < p_.steps && !reads_in_place(panel)) pack_steps(panel, step, std::min(part, p_.steps - step), to + step * p_.step_depth * width_);
      }
    });
  }

 private:
  /// Writes the columns of each step one after the other.
  void pack_for_dots(T* packed) const {
    const T* from = static_cast<const T*>(p_.b);
    for (std::int64_t s = 0; s < p_.steps; ++s, from += p_.b_step)
      for (std::int64_t j = 0; j < kernel_.columns_of_dots(p_); ++j)
        for (std::int64_t k = 0; k < p_.step_depth; ++k) *packed++ = j < p_.n ? from[k * p_.b_row + j * p_.b_column] : T{0};
  }

  /// Puts elements of two rows side by side, wherever they lie.
  void pair_elements(const std::uint16_t* from, std::int64_t columns, std::int64_t depth, T* packed) const {
    auto* to = reinterpret_cast<std::uint32_t*>(packed);
    for (std::int64_t k = 0; k < depth; ++k, to += width_, from += 2 * p_.b_row)
      for (std::int64_t j = 0; j < columns; ++j) to[j] = from[j * p_.b_column] | static_cast<std::uint32_t>(from[j * p_.b_column + p_.b_row]) << 16;
  }

  void transpose(const T* from, std::int64_t columns, std::int64_t depth, T* packed) const { kernel_.transpose(from, p_.b_column, packed, width_, columns, depth); }

  /// True when the elements of a column lie side by side, all of them.
  bool lies_transposed() const { return p_.b && !p_.windows && !p_.b_halves && p_.b_row == 1 && p_.b_column != 1; }

  /// Writes columns [first, last) of a panel of a transposed matrix, or beside windows.
  void pack_columns(std::int64_t panel, std::int64_t first, std::int64_t last, T* packed) const {
    const std::int64_t columns = std::min(width_, p_.n - panel * width_);
    for (std::int64_t k = 0; last > columns && k < depth_; ++k) std::fill(packed + k * width_ + std::max(first, columns), packed + k * width_ + last, T{0});
    last = std::min(last, columns);
    if (first >= last) return;
    packed += first;
    if (p_.b_halves) return pair_columns(static_cast<const std::uint16_t*>(p_.b) + (panel * width_ + first) * p_.b_column, last - first, packed);
    const T* from = static_cast<const T*>(p_.b) + (panel * width_ + first) * p_.b_column;
    if (lies_transposed()) return transpose(from, last - first, depth_, packed);
    if (p_.steps > 1 && p_.b_step == 1 && p_.b_row == p_.steps) return transpose_steps(from, last - first, packed);
    for (std::int64_t k = 0; k < p_.step_depth; k += pass_)
      for (std::int64_t s = 0; s < p_.steps; ++s)
        pack_pass(from + s * p_.b_step + k * p_.b_row, last - first, std::min(pass_, p_.step_depth - k), packed + row_of(p_, pass_, s, k) * width_);
  }

  void pair_columns(const std::uint16_t* from, std::int64_t columns, T* packed) const {
    for (std::int64_t k = 0; k < p_.step_depth; k += pass_)
      for (std::int64_t s = 0; s < p_.steps; ++s)
        pair_elements(from + s * p_.b_step + 2 * k * p_.b_row, columns, std::min(pass_, p_.step_depth - k), packed + row_of(p_, pass_, s, k) * width_);
  }

  void pack_pass(const T* from, std::int64_t columns, std::int64_t depth, T* packed) const {
    if (p_.b_row == 1 && p_.b_column != 1) return transpose(from, columns, depth, packed);
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t j = 0; j < columns; ++j) packed[k * width_ + j] = from[j * p_.b_column + k * p_.b_row];
  }

  /// Transposes columns whose elements lie step beside step, as the taps of a convolution's weight, and sorts their rows by steps.
  void transpose_steps(const T* from, std::int64_t columns, T* packed) const {
    constexpr std::int64_t kChunk = 256, kMostLanes = 64 / sizeof(T);
    alignas(64) T block[kChunk * kMostLanes];
    const std::int64_t lanes = kernel_.transposed_rows, whole = columns / lanes * lanes;
    for (std::int64_t j = 0; j < columns; j += lanes) {
      const std::int64_t width = std::min(lanes, columns - j);
      std::int64_t step = 0, k = 0;
      for (std::int64_t low = 0; low < depth_; low += kChunk) {
        const std::int64_t length = std::min(kChunk, depth_ - low), straight = j < whole ? length / lanes * lanes : 0;
        if (straight) kernel_.transposition(from + j * p_.b_column + low, p_.b_column, block, lanes, straight);
        for (std::int64_t i = straight; i < length; ++i)
          for (std::int64_t l = 0; l < width; ++l) block[i * lanes + l] = from[(j + l) * p_.b_column + low + i];
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t before = k % pass_;
          std::memcpy(packed + (row_of(p_, pass_, step, k - before) + before) * width_ + j, block + i * lanes, static_cast<std::size_t>(width) * sizeof(T));
          if (++step == p_.steps) step = 0, ++k;
        }
      }
    }
  }

  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  std::int64_t width_, depth_, pass_;
};

}  // namespace tenon::llvm_backend
