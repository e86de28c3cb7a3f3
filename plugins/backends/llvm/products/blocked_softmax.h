// Attention, a block of keys after the other: softmax is taken apart, so that no row of scores has to lie in memory whole.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "multiplier.h"
#include "product_chain.h"

namespace tenon::llvm_backend {

/// Computes rows of a chain whose kernel goes by blocks.
template <class T>
class BlockedSoftmax {
 public:
  /// Rows that share a block of keys while it is in cache.
  static constexpr std::int64_t kMostRows = 4 * kFinishedRows;

  BlockedSoftmax(const ProductChain& chain, const Multiplier<T>& scores, const T* keys, const Multiplier<T>& sums, const T* values)
      : chain_(chain), scores_(scores), keys_(keys), sums_(sums), values_(values), tile_(kFinishedRows * sums.width()) {}

  void rows(std::int64_t row, std::int64_t end) const {
    Scratch memory;
    const std::int64_t panel = kFinishedRows * (kPanelStride + static_cast<std::int64_t>(RowState::count));
    T* const panels = static_cast<T*>(memory.take(static_cast<std::size_t>(panel + (end - row + kFinishedRows) * sums_.width() * sums_.panels()) * sizeof(T)));
    std::array<Part, kMostRows / kFinishedRows> parts;
    std::int64_t count = 0, columns = 0;
    for (; row < end; row += kFinishedRows) {
      Part& part = parts[static_cast<std::size_t>(count)];
      part.start(row, std::min(end, row + kFinishedRows), panels + panel + count++ * tile_ * sums_.panels());
      part.seen = seen_by(part);
      columns = std::max(columns, part.seen);
    }
    for (std::int64_t first = 0; first < columns; first += kBlockColumns)
      for (std::int64_t p = 0; p < count; ++p)
        if (Part& part = parts[static_cast<std::size_t>(p)]; first < part.seen) add_block(part, panels, first, std::min(part.seen, first + kBlockColumns));
    for (std::int64_t p = 0; p < count; ++p) finish(parts[static_cast<std::size_t>(p)]);
  }

 private:
  /// At most kFinishedRows rows: what is summed up so far, in tiles, and how it is to be measured.
  struct Part {
    std::int64_t row = 0, end = 0, seen = 0;
    T* tiles = nullptr;
    std::array<T, kFinishedRows> largest, sum;

    void start(std::int64_t first, std::int64_t last, T* memory) {
      row = first, end = last, tiles = memory;
      largest.fill(-std::numeric_limits<T>::infinity()), sum.fill(0);
    }
    std::size_t rows() const { return static_cast<std::size_t>(end - row); }
  };

  std::int64_t seen_by(const Part& part) const {
    const std::int64_t columns = chain_.first.n;
    return chain_.seen ? std::clamp<std::int64_t>(chain_.seen({part.row, part.end - part.row, 0, columns, 0, chain_.first.steps}), 1, columns) : columns;
  }

  static T* state(T* panel, RowState which) { return panel + place_of(which); }

  void add_block(Part& part, T* panel, std::int64_t first, std::int64_t last) const {
    scores_.columns_to(panel, keys_, part.row, part.end, first, last);
    std::copy_n(part.largest.begin(), part.rows(), state(panel, RowState::largest));
    std::copy_n(part.sum.begin(), part.rows(), state(panel, RowState::sum));
    chain_.between({part.row, part.end - part.row, first, last - first, 0, chain_.first.steps}, panel);
    std::copy_n(state(panel, RowState::new_largest), part.rows(), part.largest.begin());
    std::copy_n(state(panel, RowState::new_sum), part.rows(), part.sum.begin());
    if (first > 0) scale(part, state(panel, RowState::factor));
    sums_.add_to_tiles(part.tiles, panel, kPanelStride, values_, chain_.second_row + part.row, chain_.second_row + part.end, first, last);
  }

  void scale(const Part& part, const T* factors) const {
    const std::int64_t width = sums_.width();
    for (std::size_t i = 0; i < part.rows(); ++i) {
      if (factors[i] == 1) continue;
      for (std::int64_t panel = 0; panel < sums_.panels(); ++panel) {
        T* const row = part.tiles + panel * tile_ + static_cast<std::int64_t>(i) * width;
        scaled(row, factors[i], row, width);
      }
    }
  }

  void finish(const Part& part) const {
    std::array<T, kFinishedRows> factors;
    for (std::size_t i = 0; i < part.rows(); ++i) {
      const bool hidden = chain_.zeroes_hidden && part.largest[i] == -std::numeric_limits<T>::infinity();
      factors[i] = hidden ? 0 : 1 / part.sum[i];
    }
    for (std::int64_t panel = 0; panel < sums_.panels(); ++panel)
      sums_.finish_tile(part.tiles + panel * tile_, factors.data(), panel, chain_.second_row + part.row, part.end - part.row);
  }

  const ProductChain& chain_;
  const Multiplier<T>& scores_;
  const T* keys_;
  const Multiplier<T>& sums_;
  const T* values_;
  std::int64_t tile_;
};

}  // namespace tenon::llvm_backend
