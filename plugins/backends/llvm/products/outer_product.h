// A sum over places (pixels) of runs that lie side by side in both operands, as the gradient of a convolution's weight is: rows of the left operand
// are read where they lie, and of the right one runs of columns, which taps move.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "launch/scratch.h"
#include "matrix_product.h"
#include "tiles/tile.h"
#include "winograd_sums.h"

namespace tenon::llvm_backend {

/// Rows that one task takes at most: with all taps of a panel of columns their sums stay in a second-level cache; of one tap more, whose columns are then read less often.
inline constexpr std::int64_t kOuterRows = 96, kOuterRowsOfOneTap = 144;
/// Places of a part of the sum that is done by itself at least, and tasks from which threads have enough to do without such parts.
inline constexpr std::int64_t kPlacesOfPart = 1024, kEnoughTasks = 16;
/// The most elements that partial sums of all parts have.
inline constexpr std::int64_t kPartialSums = 2 * 1024 * 1024;
/// Tiles of rows that read operands where they lie: more read copies of them, where a run is a line of the cache or less. Pixels are often a power of two
/// apart, and their lines then crowd into few sets of the first-level cache, which holds none of them until the next tile.
inline constexpr std::int64_t kFewTiles = 2;
/// Elements of the sums of several panels that a task adds up, where it copies or there is one tap: half a second-level cache.
inline constexpr std::int64_t kSumsOfTask = 64 * 1024;

template <class T>
class OuterProduct {
 public:
  OuterProduct(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& p, bool parallel)
      : host_(host), kernel_(kernel), p_(p), runs_(*p.runs), parallel_(parallel), width_(kernel.tile.columns), height_(kernel.tile.rows), places_(p.steps * p.step_depth),
        taps_(static_cast<std::int64_t>(runs_.of_taps.size())), run_(static_cast<std::int64_t>(runs_.of_run.size())), panels_((run_ + width_ - 1) / width_),
        blocks_((p.m + most_rows() - 1) / most_rows()) {
    if (p_.m == 0 || p_.n == 0) return;
    if (p_.picture_width > 0) squares_.emplace(kernel, p, run_);
    rows_ = ((p_.m + blocks_ - 1) / blocks_ + height_ - 1) / height_ * height_;
    blocks_ = (p_.m + rows_ - 1) / rows_;
    copies_ = !is_wide_row<T>(width_) && rows_ > kFewTiles * height_;
    const std::int64_t kept = squares_ ? squares_->kPlaces * rows_ * width_ : sums();
    together_ = squares_ || copies_ || taps_ == 1 ? std::clamp<std::int64_t>(kSumsOfTask / kept, 1, panels_) : 1;
    groups_ = (panels_ + together_ - 1) / together_;
    const std::int64_t tasks = blocks_ * groups_, most = kPartialSums / std::max<std::int64_t>(1, blocks_ * panels_ * sums());
    parts_ = std::clamp<std::int64_t>(std::min({kEnoughTasks / tasks, places_ / kPlacesOfPart, most}), 1, kEnoughTasks);
  }

  void run() {
    if (p_.m == 0 || p_.n == 0) return;
    find_columns();
    if (parts_ == 1) {
      return each(blocks_ * groups_, [&](std::int64_t task) {
        Scratch memory;
        T* const own = static_cast<T*>(memory.take(static_cast<std::size_t>(together_ * sums()) * sizeof(T)));
        add_up(task, 0, own);
        const std::int64_t row = task / groups_ * rows_, first = task % groups_ * together_;
        for (std::int64_t panel = first; panel < std::min(panels_, first + together_); ++panel) finish(panel, own + (panel - first) * sums(), row, std::min(p_.m, row + rows_));
      });
    }
    Scratch memory;
    const std::int64_t task_sums = together_ * sums();
    T* const all = static_cast<T*>(memory.take(static_cast<std::size_t>(parts_ * blocks_ * groups_ * task_sums) * sizeof(T)));
    each(parts_ * blocks_ * groups_, [&](std::int64_t number) {
      add_up(number / parts_, number % parts_, all + number * task_sums);
    });
    const std::int64_t pieces = (rows_ + kMergedRows - 1) / kMergedRows;
    each(blocks_ * panels_ * pieces, [&](std::int64_t number) { merge(number / pieces / panels_, number / pieces % panels_, number % pieces * kMergedRows, all); });
  }

 private:
  /// Rows whose parts are added up and finished together.
  static constexpr std::int64_t kMergedRows = 12;

  std::int64_t most_rows() const { return taps_ == 1 ? kOuterRowsOfOneTap : kOuterRows; }

  /// Elements of the sums of one panel and block: for each tap a block of rows as wide as a tile.
  std::int64_t sums() const { return taps_ * rows_ * width_; }

  template <class Body>
  void each(std::int64_t count, Body body) {
    const auto some = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) body(i);
    };
    if (!parallel_ || count < 2) return some(0, count);
    host_.parallel_for(0, count, 1, some);
  }

  /// Finds which sums of a panel are the columns of the product, in their order.
  void find_columns() {
    std::vector<std::int64_t> place(static_cast<std::size_t>(p_.n)), panel(static_cast<std::size_t>(p_.n));
    for (std::int64_t t = 0; t < taps_; ++t)
      for (std::int64_t j = 0; j < run_; ++j) {
        const auto column = static_cast<std::size_t>(runs_.of_taps[static_cast<std::size_t>(t)] + runs_.of_run[static_cast<std::size_t>(j)]);
        place[column] = t * rows_ * width_ + j % width_, panel[column] = j / width_;
      }
    columns_.resize(static_cast<std::size_t>(panels_));
    for (std::int64_t q = 0; q < p_.n; ++q) {
      auto& stretches = columns_[static_cast<std::size_t>(panel[static_cast<std::size_t>(q)])];
      if (stretches.empty() || stretches.back().column + static_cast<std::int64_t>(stretches.back().places.size()) != q) stretches.push_back({q, {}});
      stretches.back().places.push_back(place[static_cast<std::size_t>(q)]);
    }
  }

  /// Adds up a part of the places of a block of rows and a group of panels.
  void add_up(std::int64_t task, std::int64_t part, T* sums) const {
    if (!squares_) return add_up(task, places_ * part / parts_, places_ * (part + 1) / parts_, sums);
    const SquareGrid& grid = squares_->grid();
    const std::int64_t lines = grid.lines(places_), first = lines * part / parts_, end = lines * (part + 1) / parts_;
    const std::int64_t row = task / groups_ * rows_, column = task % groups_ * together_ * width_;
    const typename WinogradSums<T>::Part of{row, std::min(rows_, p_.m - row), column, std::min(together_ * width_, run_ - column), first, end};
    if (first < end && squares_->takes(of.rows) && squares_->takes(of.columns) && squares_->add_up(of, sums, rows_ * width_, this->sums())) return;
    add_up(task, grid.first_pixel(first), grid.first_pixel(end), sums);
  }

  /// Adds up places [first, end) of them: some at a time, which stay in the first-level cache for all rows.
  void add_up(std::int64_t task, std::int64_t first, std::int64_t end, T* sums) const {
    const std::int64_t row = task / groups_ * rows_, rows = std::min(rows_, p_.m - row), panel = task % groups_ * together_, last = std::min(panels_, panel + together_);
    const T *const a = static_cast<const T*>(p_.a) + row, *const b = static_cast<const T*>(p_.b) + panel * width_;
    const std::int64_t columns = std::min(last * width_, run_) - panel * width_, tiles = (rows + height_ - 1) / height_ * (last - panel);
    std::vector<std::int64_t> table(static_cast<std::size_t>(taps_ * kPlacesOfTable)), next(table.size());
    Scratch memory;
    T* const own = copies_ ? static_cast<T*>(memory.take(static_cast<std::size_t>(kPlacesOfTable * (rows_ + width_)) * sizeof(T))) : nullptr;
    fill(table.data(), first, end);
    for (std::int64_t k = first; k == first || k < end; k += kPlacesOfTable) {
      const std::int64_t count = std::min(kPlacesOfTable, end - k), left = std::clamp<std::int64_t>(end - k - count, 0, kPlacesOfTable);
      fill(next.data(), k + count, end);
      Coming coming{a + (k + count) * p_.a_column, b, next.data(), rows, columns, taps_ == 1 ? left : 0, (left + tiles - 1) / tiles};
      const T* from = a + k * p_.a_column;
      if (copies_) copy_rows(from, rows, count, own), from = own;
      for (std::int64_t q = panel; q < last; ++q) add_places(q, {from, rows, count}, table.data(), sums + (q - panel) * this->sums(), added_if(k > first), coming, copies_ ? own + kPlacesOfTable * rows_ : nullptr);
      table.swap(next);
    }
  }

  /// Writes where the runs of at most kPlacesOfTable places from `first` on start.
  void fill(std::int64_t* table, std::int64_t first, std::int64_t end) const {
    const std::int64_t count = std::min(kPlacesOfTable, end - first);
    for (std::int64_t i = 0; i < count; i += kPlacedTogether) p_.kernels->place_columns({first + i, std::min(kPlacedTogether, count - i), 0, 0, 0, taps_}, table + i);
  }

  /// Rows of the left operand at some places.
  struct Rows {
    const T* a;
    std::int64_t rows, places;
  };

  /// The places after those that are added up: some are fetched with each tile, which reads a line of each place, too far apart for a processor to foresee.
  struct Coming {
    const T *a, *b;
    const std::int64_t* table;
    std::int64_t rows, columns, places, some, at = 0;
  };

  void fetch(Coming& coming) const {
    for (const std::int64_t end = std::min(coming.places, coming.at + coming.some); coming.at < end; ++coming.at) {
      fetch(coming.a + coming.at * p_.a_column, coming.rows);
      if (coming.table[coming.at] >= 0) fetch(coming.b + coming.table[coming.at], coming.columns);
    }
  }

  static void fetch(const T* run, std::int64_t length) {
    for (std::int64_t i = 0; i < length; i += 64 / static_cast<std::int64_t>(sizeof(T))) __builtin_prefetch(run + i, 0, 2);
  }

  /// Adds up some places of a panel; where rows are copied, its runs are too, to `copy`.
  void add_places(std::int64_t panel, const Rows& of, const std::int64_t* table, T* sums, Before before, Coming& coming, T* copy) const {
    const std::int64_t column = panel * width_, columns = std::min(width_, run_ - column);
    const auto [kernel, height] = kernel_.outer_variant(columns);
    const T* const all_b = static_cast<const T*>(p_.b) + column;
    std::array<OuterStep, kPlacesOfTable> steps;
    for (std::int64_t t = 0; t < taps_; ++t) {
      const std::int64_t found = steps_of(table + t * kPlacesOfTable, copies_ ? rows_ : p_.a_column, of.places, steps.data());
      const T* b = all_b;
      if (copies_) copy_runs(all_b, columns, std::span(steps).first(static_cast<std::size_t>(found)), copy), b = copy;
      T* const c = sums + t * rows_ * width_;
      for (std::int64_t r = 0; r < of.rows; r += height) {
        fetch(coming);
        kernel(steps.data(), found, of.a + r, c + r * width_, width_, b, 0, std::min(height, of.rows - r), columns, before);
      }
    }
  }

  /// Copies rows of some places side by side.
  void copy_rows(const T* a, std::int64_t rows, std::int64_t count, T* to) const {
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * rows_, a + i * p_.a_column, static_cast<std::size_t>(rows) * sizeof(T));
  }

  /// Copies the runs of steps side by side, and has the steps take them from there.
  void copy_runs(const T* b, std::int64_t columns, std::span<OuterStep> steps, T* to) const {
    constexpr std::int64_t kChunk = 32 / sizeof(T);
    std::int64_t at = 0;
    for (OuterStep& step : steps) {
      std::int64_t j = 0;
      for (; j + kChunk <= columns; j += kChunk) std::memcpy(to + at + j, b + step.b + j, kChunk * sizeof(T));
      for (; j < columns; ++j) to[at + j] = b[step.b + j];
      step.b = at, at += width_;
    }
  }

  /// The places that are not masked, whose rows of the left operand lie so far apart.
  static std::int64_t steps_of(const std::int64_t* table, std::int64_t apart, std::int64_t count, OuterStep* steps) {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      steps[found] = {i * apart, table[i]};
      found += table[i] >= 0;
    }
    return found;
  }

  /// Adds the sums of all parts of some rows of a block and panel to those of the first part, in the order of the parts, and finishes them.
  void merge(std::int64_t block, std::int64_t panel, std::int64_t row, T* all) const {
    const std::int64_t first = block * rows_, end = std::min({p_.m - first, rows_, row + kMergedRows});
    if (row >= end) return;
    const std::int64_t task_sums = together_ * sums();
    T* const into = all + (block * groups_ + panel / together_) * parts_ * task_sums + panel % together_ * sums();
    for (std::int64_t part = 1; part < parts_; ++part)
      for (std::int64_t t = 0; t < taps_; ++t) {
        T* const to = into + (t * rows_ + row) * width_;
        const T* const from = to + part * task_sums;
        for (std::int64_t i = 0; i < (end - row) * width_; ++i) to[i] += from[i];
      }
    finish(panel, into + row * width_, first + row, first + end);
  }

  /// Gives rows [row, end) of the columns of a panel to the result, or to the kernel that finishes tiles.
  void finish(std::int64_t panel, const T* sums, std::int64_t row, std::int64_t end) const {
    for (const Stretch& stretch : columns_[static_cast<std::size_t>(panel)]) {
      const auto length = static_cast<std::int64_t>(stretch.places.size());
      if (p_.c) {
        for (std::int64_t r = row; r < end; ++r) take(stretch, 0, length, sums + (r - row) * width_, static_cast<T*>(p_.c) + r * p_.c_row + stretch.column);
        continue;
      }
      Scratch memory;
      T* const tile = static_cast<T*>(memory.take(static_cast<std::size_t>(kFinishedRows * width_) * sizeof(T)));
      for (std::int64_t r = row; r < end; r += kFinishedRows)
        for (std::int64_t q = 0; q < length; q += width_) {
          const std::int64_t rows = std::min(kFinishedRows, end - r), columns = std::min(width_, length - q);
          for (std::int64_t i = 0; i < rows; ++i) take(stretch, q, q + columns, sums + (r - row + i) * width_, tile + i * width_);
          p_.kernels->finish({r, rows, stretch.column + q, columns, 0, p_.steps}, tile);
        }
    }
  }

  /// Columns of the product that follow each other, and where their sums lie in a row of a panel.
  struct Stretch {
    std::int64_t column;
    std::vector<std::int64_t> places;
  };

  static void take(const Stretch& stretch, std::int64_t first, std::int64_t last, const T* sums, T* to) {
    for (std::int64_t q = first; q < last; ++q) to[q - first] = sums[stretch.places[static_cast<std::size_t>(q)]];
  }

  const HostServices& host_;
  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  const RunsOfColumns& runs_;
  bool parallel_, copies_ = false;  // of both operands
  std::int64_t width_, height_, places_, taps_, run_, panels_, blocks_, rows_ = 0, parts_ = 1;
  std::int64_t together_ = 1, groups_ = 1;  // panels of a task, and groups of so many
  std::vector<std::vector<Stretch>> columns_;  // by panel
  std::optional<WinogradSums<T>> squares_;
};

}  // namespace tenon::llvm_backend
