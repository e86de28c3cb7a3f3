// Rows of windows that are multiplied where they lie: where their runs start, and in which order they are summed.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "ahead.h"
#include "tiles/tile.h"
#include "launch/scratch.h"
#include "panels.h"

namespace tenon::llvm_backend {

/// A block of at most kFinishedRows rows of the left operand of one product. One a thread.
template <class T>
class WindowRows {
 public:
  WindowRows(const MatrixKernel& kernel, const MatrixProduct& product) : kernel_(kernel), p_(product), width_(kernel.tile.columns) {
    const auto places = static_cast<std::size_t>(p_.steps * kFinishedRows), run = static_cast<std::size_t>(p_.step_depth);
    table_ = static_cast<std::int64_t*>(memory_.take(places * sizeof(std::int64_t) + run * sizeof(T)));
    zeros_ = reinterpret_cast<T*>(table_ + places);
    std::fill_n(zeros_, run, T{0});
  }

  /// Finds where rows [row, end) start at each step; rows past them are zero.
  void place(std::int64_t row, std::int64_t end) {
    constexpr std::int64_t kRows = kFinishedRows;
    p_.kernels->place_rows({row, end - row, 0, 0, 0, p_.steps}, table_);
    for (std::int64_t s = 0; s < p_.steps; ++s) std::fill(table_ + s * kRows + end - row, table_ + (s + 1) * kRows, -1);
    rows_ = end - row, height_ = 0;
  }

  /// Copies rows [row, end) one after the other.
  void gather(std::int64_t row, std::int64_t end, T* to) {
    for (std::int64_t first = row; first < end; first += kFinishedRows) {
      const std::int64_t last = std::min(end, first + kFinishedRows);
      place(first, last);
      for (std::int64_t i = 0; i < last - first; ++i)
        for (std::int64_t s = 0; s < p_.steps; ++s, to += p_.step_depth) std::memcpy(to, run_at(table_[s * kFinishedRows + i]), static_cast<std::size_t>(p_.step_depth) * sizeof(T));
    }
  }

  /// Multiplies these rows with a packed panel.
  void multiply(const T* b, T* c, std::int64_t c_row, std::int64_t columns) {
    if (kernel_.multiplies_by_dots(p_)) return multiply_by_dots(b, c, c_row);
    const Tile tile = tile_for(columns);
    if (tile.height != height_) find_steps(tile.height);
    const std::int64_t block = Panels<T>::elements_of_pass(kernel_, p_), depth = p_.step_depth;
    const bool chains = kernel_.chains_blocks(p_);
    const Before before = chains ? Before::continued : Before::added;
    for (std::int64_t k = 0; k == 0 || k < depth;) {
      const std::int64_t elements = std::min(block, depth - k), length = chains ? blocks_of_pass(elements, depth - k) : elements;
      const T* next = b + (k + length) * p_.steps * width_;
      Ahead ahead(std::as_bytes(std::span(next, static_cast<std::size_t>(length * p_.steps * width_))));
      for (std::int64_t r = 0, t = 0; r < rows_; r += tile.height, ++t) {
        if (k > 0 && counts_[t] == 0) continue;
        const void** entries = entries_ + t * p_.steps * (1 + tile.height);
        const std::int64_t* numbers = numbers_ + t * p_.steps;
        for (std::int64_t i = 0; i < counts_[t]; ++i) entries[i * (1 + tile.height)] = b + (Panels<T>::row_of(p_, elements, numbers[i], k) - k) * width_;
        const auto part = ahead.next(counts_[t] * length / elements * lines_fetched(elements, tile.fetches), next);
        tile.function(entries, counts_[t], width_, c + r * c_row, c_row, k, k + length, std::min(tile.height, rows_ - r), columns, k > 0 ? before : Before::left_out, part.first,
                      part.stride, elements, (p_.steps - 1) * width_);
      }
      k += length;
    }
  }

 private:
  struct Tile {
    MicroKernel function;
    std::int64_t height;
    Fetches fetches;
  };

  void multiply_by_dots(const T* b, T* c, std::int64_t c_row) {
    const auto [height, width] = kernel_.dot_tile;
    if (height != height_) find_steps(height);
    const std::int64_t depth = p_.step_depth, step = kernel_.columns_of_dots(p_) * depth;
    for (std::int64_t r = 0, t = 0; r < rows_; r += height, ++t) {
      const void** entries = entries_ + t * p_.steps * (1 + height);
      for (std::int64_t j = 0; j < p_.n; j += width) {
        for (std::int64_t i = 0; i < counts_[t]; ++i) entries[i * (1 + height)] = b + numbers_[t * p_.steps + i] * step + j * depth;
        kernel_.window_dots(entries, counts_[t], c + r * c_row + j, c_row, depth, std::min<std::int64_t>(height, rows_ - r), std::min<std::int64_t>(width, p_.n - j), depth);
      }
    }
  }

  /// Elements of a pass over whole blocks, of which at least one is left, whose part of the panel stays in the first-level cache.
  std::int64_t blocks_of_pass(std::int64_t block, std::int64_t left) const {
    constexpr std::int64_t kPanelBytes = 16 * 1024;
    const std::int64_t cached = kPanelBytes / (block * p_.steps * width_ * static_cast<std::int64_t>(sizeof(T)));
    return std::clamp<std::int64_t>(cached, 1, left / block) * block;
  }

  /// Few rows wait for the weights: those of the next pass are fetched meanwhile, by low tiles, which have the time to fetch all of them.
  /// Many rows find them in the second-level cache.
  Tile tile_for(std::int64_t columns) const {
    constexpr std::int64_t kWaitingRows = 2 * kFinishedRows;
    const auto variant = kernel_.variant(columns);
    if (p_.m <= kFinishedRows && variant.width == width_) return {kernel_.fetching_streaming, kernel_.streaming_tile.rows, Fetches::far_ahead};
    if (p_.m <= kWaitingRows) return {variant.fetching, variant.height, Fetches::ahead};
    return {variant.function, variant.height, Fetches::nothing};
  }

  /// Finds what tiles of so many rows multiply with any panel.
  void find_steps(std::int64_t height) {
    const std::int64_t tiles = (rows_ + height - 1) / height, length = 1 + height;
    counts_ = static_cast<std::int64_t*>(steps_memory_.take(static_cast<std::size_t>(tiles * (1 + p_.steps * (1 + length))) * sizeof(std::int64_t)));
    numbers_ = counts_ + tiles, entries_ = reinterpret_cast<const void**>(numbers_ + tiles * p_.steps), height_ = height;
    for (std::int64_t t = 0; t < tiles; ++t) {
      const void** entry = entries_ + t * p_.steps * length;
      counts_[t] = 0;
      for (std::int64_t s = 0; s < p_.steps; ++s) {
        if (!set_rows(height, table_ + s * kFinishedRows + t * height, entry + 1)) continue;
        numbers_[t * p_.steps + counts_[t]++] = s;
        entry += length;
      }
    }
  }

  /// False where all rows are zero.
  bool set_rows(std::int64_t height, const std::int64_t* places, const void** rows) const {
    bool any = false;
    for (std::int64_t i = 0; i < height; ++i) {
      any = any || places[i] >= 0;
      rows[i] = run_at(places[i]);
    }
    return any;
  }

  /// Places count elements of the value, which are halves of pairs.
  const void* run_at(std::int64_t place) const {
    const auto size = static_cast<std::int64_t>(is_reduced_float(kernel_.dtype) ? sizeof(T) / 2 : sizeof(T));
    return place >= 0 ? static_cast<const std::byte*>(p_.a) + place * size : static_cast<const void*>(zeros_);
  }

  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  std::int64_t width_;
  Scratch memory_, steps_memory_;
  std::int64_t* table_ = nullptr;
  T* zeros_ = nullptr;
  std::int64_t rows_ = 0, height_ = 0;  // of the block, and of the tiles whose steps are known
  // By tile: those steps at which not all of it is zero, their numbers, and what is multiplied at each: a place of b, and rows of a.
  std::int64_t *counts_ = nullptr, *numbers_ = nullptr;
  const void** entries_ = nullptr;
};

}  // namespace tenon::llvm_backend
