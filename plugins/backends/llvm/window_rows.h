// Rows of windows that are multiplied where they lie: where their runs start, and in which order they are summed.
#pragma once

#include <algorithm>

#include "fusion/tile.h"
#include "matrix_product.h"
#include "scratch.h"

namespace tenon::llvm_backend {

/// A block of at most kFinishedRows rows of the left operand of one product. One a thread.
template <class T>
class WindowRows {
 public:
  WindowRows(const MatrixKernel& kernel, const MatrixProduct& product) : kernel_(kernel), p_(product), width_(kernel.tile.columns) {
    const auto places = static_cast<std::size_t>(p_.steps * codegen::kFinishedRows), run = static_cast<std::size_t>(p_.step_depth);
    table_ = static_cast<std::int64_t*>(memory_.take(places * sizeof(std::int64_t) + run * sizeof(T)));
    zeros_ = reinterpret_cast<T*>(table_ + places);
    std::fill_n(zeros_, run, T{0});
  }

  /// Finds where rows [row, end) start at each step; rows past them are zero.
  void place(std::int64_t row, std::int64_t end) {
    constexpr std::int64_t kRows = codegen::kFinishedRows;
    p_.kernels->place_rows({row, end - row, 0, 0, 0, p_.steps}, table_);
    for (std::int64_t s = 0; s < p_.steps; ++s) std::fill(table_ + s * kRows + end - row, table_ + (s + 1) * kRows, -1);
  }

  /// Multiplies the first `rows` rows with a packed panel.
  void multiply(const T* b, std::int64_t rows, T* c, std::int64_t c_row, std::int64_t columns) const {
    const auto tile = kernel_.variant(columns);
    Scratch memory;
    const Steps steps = steps_of(tile, b, rows, memory);
    const std::int64_t pass = elements_of_pass();
    for (std::int64_t k = 0; k == 0 || k < p_.step_depth; k += pass)
      for (std::int64_t r = 0, t = 0; r < rows; r += tile.height, ++t) {
        if (k > 0 && steps.counts[t] == 0) continue;
        tile.function(steps.entries + t * p_.steps * (1 + tile.height), steps.counts[t], width_, c + r * c_row, c_row, k, std::min(k + pass, p_.step_depth),
                      std::min(tile.height, rows - r), columns, k > 0, nullptr, 0);
      }
  }

 private:
  /// By tile: what it multiplies at those steps where not all of it is zero, with room for all of them.
  struct Steps {
    const void** entries;
    std::int64_t* counts;
  };

  Steps steps_of(const MatrixKernel::Variant& tile, const T* b, std::int64_t rows, Scratch& memory) const {
    const std::int64_t tiles = (rows + tile.height - 1) / tile.height, length = 1 + tile.height;
    auto* counts = static_cast<std::int64_t*>(memory.take(static_cast<std::size_t>(tiles * (1 + p_.steps * length)) * sizeof(std::int64_t)));
    const Steps found{reinterpret_cast<const void**>(counts + tiles), counts};
    for (std::int64_t t = 0; t < tiles; ++t) {
      const void** entry = found.entries + t * p_.steps * length;
      for (std::int64_t s = 0; s < p_.steps; ++s) entry += add_step(tile.height, table_ + s * codegen::kFinishedRows + t * tile.height, b + s * p_.step_depth * width_, entry);
      counts[t] = (entry - (found.entries + t * p_.steps * length)) / length;
    }
    return found;
  }

  /// Gives the length of the entry: 0 where all rows are zero.
  std::int64_t add_step(std::int64_t height, const std::int64_t* places, const T* b, const void** entry) const {
    bool any = false;
    for (std::int64_t i = 0; i < height; ++i) {
      any = any || places[i] >= 0;
      entry[1 + i] = places[i] >= 0 ? static_cast<const T*>(p_.a) + places[i] : zeros_;
    }
    entry[0] = b;
    return any ? 1 + height : 0;
  }

  /// Elements of each run that one pass takes at all steps. Passes over 16 channels make the sums that oneDNN's direct convolutions
  /// make, to the last bit. Runs over several pixels are of few channels, and stay whole.
  std::int64_t elements_of_pass() const {
    constexpr std::int64_t kChannels = 16;
    if (p_.steps == 1) return even_pass(p_.step_depth, kDepth);
    return p_.b ? kChannels : std::max<std::int64_t>(1, p_.step_depth);
  }

  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  std::int64_t width_;
  Scratch memory_;
  std::int64_t* table_ = nullptr;
  T* zeros_ = nullptr;
};

}  // namespace tenon::llvm_backend
