#include "matrix_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fusion/tile.h"
#include "scratch.h"

namespace tenon::llvm_backend {
namespace {

/// The least and the most steps of the sum that one pass takes. Passes are added up: the error of a sum of n numbers is then like that
/// of sums of about 4 sqrt(n).
constexpr std::int64_t kLeastDepth = 32, kDepth = 256;
/// Rows of the result between two calls of the kernel that finishes them: with a tile's columns they stay in the first-level cache.
using codegen::kFinishedRows;
/// Elements of the left operand that are multiplied with a group of panels before the next ones: half a second-level cache.
constexpr std::int64_t kCachedElements = 128 * 1024;
/// Panels that a thread packs at once, when there are many, and the elements that they should not exceed.
constexpr std::int64_t kPanelGroup = 4;
constexpr std::int64_t kGroupElements = 256 * 1024;
/// The most rows of a register tile.
constexpr int kMostRows = 12;
/// Up to so many rows, a transposed b is multiplied by dot products and not packed; and steps of the sum that one of them takes.
constexpr std::int64_t kDotRows = 48, kDotDepth = 4096;
/// Below this many rows, packing b costs more than reading it where it is.
constexpr std::int64_t kFewRows = 12;

template <class T>
class Multiplier {
 public:
  Multiplier(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& p, bool parallel)
      : host_(host), kernel_(kernel), p_(p), width_(kernel.tile.columns), height_(kernel.tile.rows), depth_(p.steps * p.step_depth),
        pass_(std::clamp(static_cast<std::int64_t>(std::sqrt(static_cast<double>(depth_))) * 4 - kLeastDepth / 2, kLeastDepth, kDepth)),
        work_(static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(depth_)), parallel_(parallel && work_ >= kParallelProduct),
        dots_(p.b && !p.windows && p.b_row == 1 && p.b_column != 1 && p.m <= kDotRows) {}

  void run() {
    if (p_.m == 0 || p_.n == 0) return;
    Scratch rows;
    prepare_rows(rows);
    const std::int64_t threads = parallel_ ? host_.thread_count() : 1;
    if (threads == 1 || panels() >= 2 * threads) over_panels(threads);
    else over_rows(threads);
  }

 private:
  std::int64_t panels() const { return (p_.n + width_ - 1) / width_; }
  std::int64_t panel_elements() const { return depth_ * width_; }

  template <class Body>
  void each(std::int64_t count, Body body) {
    if (!parallel_ || count < 2) return body(std::int64_t{0}, count);
    host_.parallel_for(0, count, 1, body);
  }

  // ---- the left operand

  /// Rows that are pages apart and read again for many panels would crowd into few sets of the caches.
  bool far_rows() const { return p_.a_row * static_cast<std::int64_t>(sizeof(T)) >= 4096 && panels() >= 4 && p_.m >= 4 * height_; }

  void prepare_rows(Scratch& memory) {
    a_ = static_cast<const T*>(p_.a), a_row_ = p_.a_row;
    if (p_.windows) return;
    const bool in_place = p_.a && (p_.a_column == 1 || depth_ <= 1) && !far_rows();
    if (in_place) return;
    constexpr std::int64_t kBlock = 16, kLine = 64 / sizeof(T);
    a_row_ = p_.a && depth_ % (16 * kLine) == 0 ? depth_ + kLine : depth_;  // rows a power of two apart crowd like those pages apart
    T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>(p_.m * a_row_) * sizeof(T)));
    each((p_.m + kBlock - 1) / kBlock, [&](std::int64_t low, std::int64_t high) {
      const std::int64_t first = low * kBlock, last = std::min(p_.m, high * kBlock);
      if (!p_.a) p_.kernels->pack_rows({first, last - first, 0, 0, 0, p_.steps}, packed + first * depth_);
      else for (std::int64_t i = first; i < last; i += kBlock) copy_rows(i, std::min(last, i + kBlock), packed);
    });
    a_ = packed;
  }

  void copy_rows(std::int64_t first, std::int64_t last, T* packed) const {
    const T* from = static_cast<const T*>(p_.a);
    if (p_.a_column == 1) {
      for (std::int64_t i = first; i < last; ++i) std::memcpy(packed + i * a_row_, from + i * p_.a_row, static_cast<std::size_t>(depth_) * sizeof(T));
      return;
    }
    for (std::int64_t k = 0; k < depth_; ++k)
      for (std::int64_t i = first; i < last; ++i) packed[i * a_row_ + k] = from[i * p_.a_row + k * p_.a_column];
  }

  // ---- the right operand

  bool reads_in_place(std::int64_t panel) const { return p_.b && !p_.windows && p_.b_column == 1 && p_.m < kFewRows && (panel + 1) * width_ <= p_.n; }

  /// Writes the rows of the panel from `step` on; columns past the last one are zero.
  void pack_panel(std::int64_t panel, std::int64_t step, std::int64_t steps, T* packed) const {
    const std::int64_t column = panel * width_, columns = std::min(width_, p_.n - column);
    const std::int64_t first = step * p_.step_depth, depth = steps * p_.step_depth;
    packed += first * width_;
    if (columns < width_) std::fill(packed, packed + depth * width_, T{0});
    if (!p_.b) return p_.kernels->pack_columns({0, 0, column, columns, step, steps}, packed);
    const T* from = static_cast<const T*>(p_.b) + column * p_.b_column + first * p_.b_row;
    if (p_.b_row == 1 && p_.b_column != 1) return transpose(from, columns, depth, packed);
    for (std::int64_t k = 0; k < depth; ++k) {
      if (p_.b_column == 1) std::memcpy(packed + k * width_, from + k * p_.b_row, static_cast<std::size_t>(columns) * sizeof(T));
      else for (std::int64_t j = 0; j < columns; ++j) packed[k * width_ + j] = from[j * p_.b_column + k * p_.b_row];
    }
  }

  void transpose(const T* from, std::int64_t columns, std::int64_t depth, T* packed) const {
    const std::int64_t rows = kernel_.transposed_rows, whole_columns = columns / rows * rows, whole_depth = depth / rows * rows;
    for (std::int64_t j = 0; j < whole_columns; j += rows) kernel_.transposition(from + j * p_.b_column, p_.b_column, packed + j, width_, whole_depth);
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t k = j < whole_columns ? whole_depth : 0; k < depth; ++k) packed[k * width_ + j] = from[j * p_.b_column + k];
  }

  /// Writes columns [first, last) of a panel beside windows.
  void pack_steps(std::int64_t panel, std::int64_t first, std::int64_t last, T* packed) const {
    const std::int64_t columns = std::min(width_, p_.n - panel * width_);
    for (std::int64_t k = 0; last > columns && k < depth_; ++k) std::fill(packed + k * width_ + std::max(first, columns), packed + k * width_ + last, T{0});
    last = std::min(last, columns);
    if (first >= last) return;
    const T* from = static_cast<const T*>(p_.b) + (panel * width_ + first) * p_.b_column;
    packed += first;
    if (p_.steps > 1 && p_.b_step == 1 && p_.b_row == p_.steps) return transpose_steps(from, last - first, packed);
    for (std::int64_t s = 0; s < p_.steps; ++s, from += p_.b_step, packed += p_.step_depth * width_) {
      if (p_.b_row == 1 && p_.b_column != 1) {
        transpose(from, last - first, p_.step_depth, packed);
        continue;
      }
      for (std::int64_t k = 0; k < p_.step_depth; ++k)
        for (std::int64_t j = 0; j < last - first; ++j) packed[k * width_ + j] = from[j * p_.b_column + k * p_.b_row];
    }
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
          std::memcpy(packed + (step * p_.step_depth + k) * width_ + j, block + i * lanes, static_cast<std::size_t>(width) * sizeof(T));
          if (++step == p_.steps) step = 0, ++k;
        }
      }
    }
  }

  // ---- blocks

  /// Each thread packs the panels that it multiplies with all rows; a group of them shares what is read of the left operand.
  void over_panels(std::int64_t threads) {
    const std::int64_t fitting = std::clamp<std::int64_t>(kGroupElements / std::max<std::int64_t>(1, panel_elements()), 1, kPanelGroup);
    const std::int64_t group = std::clamp<std::int64_t>(panels() / (2 * threads), 1, fitting);
    each((panels() + group - 1) / group, [&](std::int64_t low, std::int64_t high) {
      Scratch memory;
      T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>(group * panel_elements()) * sizeof(T)));
      for (std::int64_t g = low; g < high; ++g) {
        const std::int64_t first = g * group, last = std::min(panels(), first + group);
        for (std::int64_t panel = first; panel < last; ++panel)
          if (p_.windows) pack_steps(panel, 0, width_, packed + (panel - first) * panel_elements());
          else if (!dots_ && !reads_in_place(panel)) pack_panel(panel, 0, p_.steps, packed + (panel - first) * panel_elements());
        const std::int64_t rows = std::max(kFinishedRows, kCachedElements / std::max<std::int64_t>(1, depth_) / kFinishedRows * kFinishedRows);
        for (std::int64_t row = 0; row < p_.m; row += rows)
          for (std::int64_t panel = first; panel < last; ++panel) block(panel, packed + (panel - first) * panel_elements(), row, std::min(p_.m, row + rows));
      }
    });
  }

  /// Few panels: all are packed first, then threads share their rows.
  void over_rows(std::int64_t threads) {
    Scratch memory;
    T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>(panels() * panel_elements()) * sizeof(T)));
    pack_all(threads, packed);
    const std::int64_t chunks = std::clamp<std::int64_t>((4 * threads + panels() - 1) / panels(), 1, (p_.m + height_ - 1) / height_);
    const std::int64_t rows = ((p_.m + chunks - 1) / chunks + height_ - 1) / height_ * height_;
    each(panels() * chunks, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t task = low; task < high; ++task) {
        const std::int64_t panel = task % panels(), row = task / panels() * rows;
        if (row < p_.m) block(panel, packed + panel * panel_elements(), row, std::min(p_.m, row + rows));
      }
    });
  }

  /// Packs all panels on all threads: beside windows by columns, else by steps of the sum.
  void pack_all(std::int64_t threads, T* packed) {
    if (dots_) return;
    if (p_.windows) {
      const std::int64_t lanes = kernel_.transposed_rows, parts = width_ / lanes;
      return each(panels() * parts, [&](std::int64_t low, std::int64_t high) {
        for (std::int64_t task = low; task < high; ++task)
          pack_steps(task / parts, task % parts * lanes, (task % parts + 1) * lanes, packed + task / parts * panel_elements());
      });
    }
    const std::int64_t parts = std::min(p_.steps, 4 * threads), part = (p_.steps + std::max<std::int64_t>(1, parts) - 1) / std::max<std::int64_t>(1, parts);
    each(panels() * parts, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t task = low; task < high; ++task) {
        const std::int64_t panel = task / parts, step = task % parts * part;
        if (step < p_.steps && !reads_in_place(panel)) pack_panel(panel, step, std::min(part, p_.steps - step), packed + panel * panel_elements());
      }
    });
  }

  void block(std::int64_t panel, const T* packed, std::int64_t row, std::int64_t end) const {
    const std::int64_t column = panel * width_, columns = std::min(width_, p_.n - column);
    const bool in_place = reads_in_place(panel);
    const T* b = dots_ || in_place ? static_cast<const T*>(p_.b) + column * p_.b_column : packed;
    const std::int64_t b_row = in_place ? p_.b_row : width_;
    if (p_.c) return product(b, b_row, row, end, static_cast<T*>(p_.c) + row * p_.c_row + column, p_.c_row, columns);
    Scratch memory;
    T* tile = static_cast<T*>(memory.take(static_cast<std::size_t>(kFinishedRows * width_) * sizeof(T)));
    for (; row < end; row += kFinishedRows) {
      const std::int64_t rows = std::min(kFinishedRows, end - row);
      product(b, b_row, row, row + rows, tile, width_, width_);
      p_.kernels->finish({row, rows, column, columns, 0, p_.steps}, tile);
    }
  }

  /// The register tile for so many columns.
  struct Variant {
    codegen::MicroKernel function;
    std::int64_t height;
  };
  Variant variant(std::int64_t columns) const {
    if (columns <= kernel_.narrow_tile.columns) return {kernel_.narrow, kernel_.narrow_tile.rows};
    return {kernel_.function, height_};
  }

  void product(const T* b, std::int64_t b_row, std::int64_t row, std::int64_t end, T* c, std::int64_t c_row, std::int64_t columns) const {
    if (p_.windows) return window_product(b, row, end, c, c_row, columns);
    if (dots_) return dot_product(b, row, end, c, c_row, columns);
    for (; row < end; row += kFinishedRows, c += kFinishedRows * c_row) few_rows(b, b_row, row, std::min(end, row + kFinishedRows), c, c_row, columns);
  }

  /// All passes over so many rows that their sums stay in the first-level cache.
  void few_rows(const T* b, std::int64_t b_row, std::int64_t row, std::int64_t end, T* c, std::int64_t c_row, std::int64_t columns) const {
    const auto [function, height] = variant(columns);
    const void* rows[kMostRows];
    for (std::int64_t k = 0; k == 0 || k < depth_; k += pass_)
      for (std::int64_t r = row; r < end; r += height) {
        for (std::int64_t i = 0; i < height; ++i) rows[i] = a_ + std::min(r + i, end - 1) * a_row_ + k;
        function(rows, b + k * b_row, b_row, c + (r - row) * c_row, c_row, std::min(pass_, depth_ - k), std::min(height, end - r), columns, k > 0);
      }
  }

  void dot_product(const T* b, std::int64_t row, std::int64_t end, T* c, std::int64_t c_row, std::int64_t columns) const {
    const auto [height, width] = kernel_.dot_tile;
    const void *a_rows[kMostRows], *b_columns[kMostRows];
    for (std::int64_t k = 0; k == 0 || k < depth_; k += kDotDepth)
      for (std::int64_t j = 0; j < columns; j += width) {
        for (std::int64_t l = 0; l < width; ++l) b_columns[l] = b + std::min(j + l, columns - 1) * p_.b_column + k;
        for (std::int64_t r = row; r < end; r += height) {
          for (std::int64_t i = 0; i < height; ++i) a_rows[i] = a_ + std::min(r + i, end - 1) * a_row_ + k;
          kernel_.dot(a_rows, b_columns, c + (r - row) * c_row + j, c_row, std::min(kDotDepth, depth_ - k), std::min<std::int64_t>(height, end - r),
                      std::min<std::int64_t>(width, columns - j), k > 0);
        }
      }
  }

  void window_product(const T* b, std::int64_t row, std::int64_t end, T* c, std::int64_t c_row, std::int64_t columns) const {
    Scratch memory;
    auto* table = static_cast<std::int64_t*>(memory.take(static_cast<std::size_t>(p_.steps * kFinishedRows) * sizeof(std::int64_t)));
    const Variant tile = variant(columns);
    for (; row < end; row += kFinishedRows, c += kFinishedRows * c_row) {
      const std::int64_t rows = std::min(kFinishedRows, end - row);
      p_.kernels->place_rows({row, rows, 0, 0, 0, p_.steps}, table);
      for (std::int64_t s = 0; s < p_.steps; ++s)
        for (std::int64_t k = 0; k < p_.step_depth; k += pass_)
          for (std::int64_t r = 0; r < rows; r += tile.height)
            run_product(tile, table + s * kFinishedRows + r, std::min(tile.height, rows - r), s, k, b, c + r * c_row, c_row, columns);
    }
  }

  /// Multiplies runs of a few rows with a part of one step.
  void run_product(const Variant& tile, const std::int64_t* places, std::int64_t count, std::int64_t step, std::int64_t k, const T* b, T* c, std::int64_t c_row, std::int64_t columns) const {
    alignas(64) static constexpr T kZeros[kDepth]{};
    const void* rows[kMostRows];
    const bool first = step == 0 && k == 0;
    bool any = first;
    for (std::int64_t i = 0; i < tile.height; ++i) {
      const std::int64_t place = places[std::min(i, count - 1)];
      any = any || place >= 0;
      rows[i] = place < 0 ? kZeros : a_ + place + k;
    }
    if (any) tile.function(rows, b + (step * p_.step_depth + k) * width_, width_, c, c_row, std::min(pass_, p_.step_depth - k), count, columns, !first);
  }

  const HostServices& host_;
  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  std::int64_t width_, height_, depth_, pass_;
  double work_;
  bool parallel_, dots_;
  const T* a_ = nullptr;
  std::int64_t a_row_ = 0;
};

}  // namespace

void multiply(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel) {
  if (kernel.dtype == DType::f64) Multiplier<double>(host, kernel, product, parallel).run();
  else Multiplier<float>(host, kernel, product, parallel).run();
}

}  // namespace tenon::llvm_backend
