#include "matrix_product.h"

#include <algorithm>
#include <cstring>

#include "scratch.h"

namespace tenon::llvm_backend {
namespace {

/// Steps of the sum that one pass takes. Passes are added up: the error of a sum of n numbers is then like that of 256 and of n / 256.
constexpr std::int64_t kDepth = 256;
/// Rows of the result between two calls of the kernel that finishes them: with a tile's columns they stay in the first-level cache.
constexpr std::int64_t kFinishedRows = 48;
/// Elements of the left operand that are multiplied with a group of panels before the next ones: half a second-level cache.
constexpr std::int64_t kCachedElements = 128 * 1024;
/// Panels that a thread packs at once, when there are many.
constexpr std::int64_t kPanelGroup = 4;
/// Below this many rows, packing b costs more than reading it where it is.
constexpr std::int64_t kFewRows = 12;

template <class T>
class Multiplier {
 public:
  Multiplier(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& p, bool parallel)
      : host_(host), kernel_(kernel), p_(p), width_(kernel.tile.columns), height_(kernel.tile.rows), depth_(p.steps * p.step_depth),
        work_(static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(depth_)), parallel_(parallel && work_ >= kParallelProduct) {}

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

  bool reads_in_place(std::int64_t panel) const { return p_.b && p_.b_column == 1 && p_.m < kFewRows && (panel + 1) * width_ <= p_.n; }

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

  // ---- blocks

  /// Each thread packs the panels that it multiplies with all rows; a group of them shares what is read of the left operand.
  void over_panels(std::int64_t threads) {
    const std::int64_t group = std::clamp<std::int64_t>(panels() / (2 * threads), 1, kPanelGroup);
    each((panels() + group - 1) / group, [&](std::int64_t low, std::int64_t high) {
      Scratch memory;
      T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>(group * panel_elements()) * sizeof(T)));
      for (std::int64_t g = low; g < high; ++g) {
        const std::int64_t first = g * group, last = std::min(panels(), first + group);
        for (std::int64_t panel = first; panel < last; ++panel)
          if (!reads_in_place(panel)) pack_panel(panel, 0, p_.steps, packed + (panel - first) * panel_elements());
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
    const std::int64_t parts = std::min(p_.steps, 4 * threads), part = (p_.steps + std::max<std::int64_t>(1, parts) - 1) / std::max<std::int64_t>(1, parts);
    each(panels() * parts, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t task = low; task < high; ++task) {
        const std::int64_t panel = task / parts, step = task % parts * part;
        if (step < p_.steps && !reads_in_place(panel)) pack_panel(panel, step, std::min(part, p_.steps - step), packed + panel * panel_elements());
      }
    });
    const std::int64_t chunks = std::clamp<std::int64_t>((4 * threads + panels() - 1) / panels(), 1, (p_.m + height_ - 1) / height_);
    const std::int64_t rows = ((p_.m + chunks - 1) / chunks + height_ - 1) / height_ * height_;
    each(panels() * chunks, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t task = low; task < high; ++task) {
        const std::int64_t panel = task % panels(), row = task / panels() * rows;
        if (row < p_.m) block(panel, packed + panel * panel_elements(), row, std::min(p_.m, row + rows));
      }
    });
  }

  void block(std::int64_t panel, const T* packed, std::int64_t row, std::int64_t end) const {
    const std::int64_t column = panel * width_, columns = std::min(width_, p_.n - column);
    const bool in_place = reads_in_place(panel);
    const T* b = in_place ? static_cast<const T*>(p_.b) + column : packed;
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

  void product(const T* b, std::int64_t b_row, std::int64_t row, std::int64_t end, T* c, std::int64_t c_row, std::int64_t columns) const {
    for (std::int64_t k = 0; k == 0 || k < depth_; k += kDepth)
      for (std::int64_t r = row; r < end; r += height_)
        kernel_.function(a_ + r * a_row_ + k, a_row_, b + k * b_row, b_row, c + (r - row) * c_row, c_row, std::min(kDepth, depth_ - k), std::min(height_, end - r), columns,
                         k > 0);
  }

  const HostServices& host_;
  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  std::int64_t width_, height_, depth_;
  double work_;
  bool parallel_;
  const T* a_ = nullptr;
  std::int64_t a_row_ = 0;
};

}  // namespace

void multiply(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel) {
  if (kernel.dtype == DType::f64) Multiplier<double>(host, kernel, product, parallel).run();
  else Multiplier<float>(host, kernel, product, parallel).run();
}

}  // namespace tenon::llvm_backend
