#include "matrix_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "fusion/tile.h"
#include "panels.h"
#include "scratch.h"
#include "winograd_product.h"

namespace tenon::llvm_backend {
namespace {

/// The least elements of the sum that one pass takes: fewer are not worth loading and storing the tile. Passes are added up: the error
/// of a long sum of n numbers is then like that of sums of about 4 sqrt(n).
constexpr std::int64_t kLeastDepth = 128;
/// Elements of the sum that one pass over windows takes, of several short runs or of a part of a long one.
constexpr std::int64_t kWindowDepth = 320;
/// The most steps of one pass over windows.
constexpr std::int64_t kMostSteps = kWindowDepth / 16;
/// Rows of the result between two calls of the kernel that finishes them: with a tile's columns they stay in the first-level cache.
using codegen::kFinishedRows;
/// Elements of the left operand that are multiplied with a group of panels before the next ones: half a second-level cache.
constexpr std::int64_t kCachedElements = 128 * 1024;
/// Elements of all panels up to which a thread packs the rows that it multiplies: it reads the panels again for each block of rows.
constexpr std::int64_t kReadAgain = 512 * 1024;
/// Panels that a thread packs at once, when there are many, and the elements that they should not exceed.
constexpr std::int64_t kPanelGroup = 4;
constexpr std::int64_t kGroupElements = 256 * 1024;
/// Up to so many rows, a transposed b is multiplied by dot products and not packed; and steps of the sum that one of them takes.
constexpr std::int64_t kDotRows = 48, kDotDepth = 4096;

/// Fetches memory that is needed soon into the second-level cache, a part with each call of the microkernel: memory is slower than it.
class Ahead {
 public:
  Ahead() = default;
  Ahead(std::span<const std::byte> bytes, std::int64_t calls) : bytes_(bytes), lines_((static_cast<std::int64_t>(bytes.size()) / kLine + calls) / calls) {}

  void fetch() {
    constexpr int kForReading = 0, kIntoSecondLevel = 2;
    for (std::int64_t i = 0; i < lines_ && !bytes_.empty(); ++i) {
      __builtin_prefetch(bytes_.data(), kForReading, kIntoSecondLevel);
      bytes_ = bytes_.subspan(std::min<std::size_t>(kLine, bytes_.size()));
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;
  std::span<const std::byte> bytes_;
  std::int64_t lines_ = 0;
};

template <class T>
class Multiplier {
 public:
  Multiplier(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& p, bool parallel)
      : host_(host), kernel_(kernel), p_(p), c_(static_cast<T*>(p.c)), panels_(kernel, p), width_(kernel.tile.columns), height_(kernel.tile.rows), depth_(p.steps * p.step_depth),
        pass_(even_pass(depth_, std::clamp(static_cast<std::int64_t>(std::sqrt(static_cast<double>(depth_))) * 4 - 16, kLeastDepth, kDepth))),
        work_(static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(depth_)), parallel_(parallel && work_ >= kParallelProduct),
        dots_(p.b && !p.windows && p.b_row == 1 && p.b_column != 1 && p.m <= kDotRows) {}

  void run() {
    if (p_.m == 0 || p_.n == 0) return;
    if (p_.picture_width > 0 && p_.step_depth >= kernel_.transposed_rows) return run_transformed();
    const std::int64_t threads = parallel_ ? host_.thread_count() : 1;
    packs_rows_ = !p_.windows && !p_.a && p_.m >= 4 * threads * kFinishedRows && panels() * panel_elements() <= kReadAgain;
    Scratch rows;
    prepare_rows(rows);
    keep_panels();
    if (!packs_rows_ && (threads == 1 || panels() >= 2 * threads)) over_panels(threads);
    else over_rows(threads);
  }

  // ---- blocks of rows of a chain

  /// Makes the left operand ready to be read: by rows, in memory.
  void prepare_rows(Scratch& memory) {
    a_ = static_cast<const T*>(p_.a), a_row_ = p_.a_row;
    if (packs_rows_) a_row_ = depth_;
    if (p_.windows || packs_rows_) return;
    const bool in_place = p_.a && (p_.a_column == 1 || depth_ <= 1) && !far_rows();
    if (!in_place) a_ = packed_left(memory);
  }

  /// Packs the right operand where that is needed.
  const T* pack_for_blocks(Scratch& memory) {
    if (!packs()) return nullptr;
    T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>(panels() * panel_elements()) * sizeof(T)));
    pack_all(packed);
    return packed;
  }

  /// Writes rows of the product densely to a panel, at least as many columns as are given.
  void rows_to(T* panel, const T* packed, std::int64_t row, std::int64_t end, std::int64_t columns) const {
    Multiplier mine(*this);
    mine.c_ = panel, mine.first_row_of_c_ = row;
    mine.blocks(0, (columns + width_ - 1) / width_, packed, row, end);
  }

  /// Computes rows of the product from a panel with the same rows of the left operand, which lie densely and are zero from `depth` on.
  void rows_from(const T* panel, const T* packed, std::int64_t row, std::int64_t end, std::int64_t depth) const {
    Multiplier mine(*this);
    mine.a_ = panel, mine.a_row_ = depth_, mine.first_row_ = row, mine.depth_ = depth;
    mine.blocks(0, panels(), packed, row, end);
  }

 private:
  void run_transformed() {
    a_ = static_cast<const T*>(p_.a);
    WinogradProduct<T>(host_, kernel_, p_, parallel_, [this](std::int64_t panel, std::int64_t row, std::int64_t end) {
      Scratch memory;
      T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>(panel_elements()) * sizeof(T)));
      panels_.pack(panel, packed);
      blocks(panel, panel + 1, packed, row, end);
    }).run();
  }

  std::int64_t panels() const { return panels_.count(); }
  std::int64_t panel_elements() const { return panels_.elements(); }

  template <class Body>
  void each(std::int64_t count, Body body) {
    if (!parallel_ || count < 2) return body(std::int64_t{0}, count);
    host_.parallel_for(0, count, 1, body);
  }

  // ---- the left operand

  /// Rows that are whole pages apart and read again for many panels would crowd into few sets of the caches.
  bool far_rows() const {
    constexpr std::int64_t kPage = 4096 / sizeof(T);
    return p_.a_row >= kPage && p_.a_row % kPage == 0 && panels() >= 4 && p_.m >= 4 * height_;
  }

  T* packed_left(Scratch& memory) {
    constexpr std::int64_t kBlock = 16, kLine = 64 / sizeof(T);
    a_row_ = p_.a && depth_ % (16 * kLine) == 0 ? depth_ + kLine : depth_;  // rows a power of two apart crowd like those pages apart
    T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>(p_.m * a_row_) * sizeof(T)));
    each((p_.m + kBlock - 1) / kBlock, [&](std::int64_t low, std::int64_t high) {
      const std::int64_t first = low * kBlock, last = std::min(p_.m, high * kBlock);
      if (!p_.a) p_.kernels->pack_rows({first, last - first, 0, 0, 0, p_.steps}, packed + first * depth_);
      else for (std::int64_t i = first; i < last; i += kBlock) copy_rows(i, std::min(last, i + kBlock), packed);
    });
    return packed;
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

  // ---- blocks

  bool packs() const { return !kept_ && !dots_; }

  void pack_all(T* packed) {
    panels_.pack_all(parallel_ ? host_.thread_count() : 1, packed, [&](std::int64_t count, auto body) { each(count, body); });
  }

  /// Packs the right operand for later calls too, or finds it packed. What is no constant has to be hashed for that, which reads all of it
  /// once more: packing a plain matrix beside its product costs less.
  void keep_panels() {
    if (!p_.kept || dots_ || panels_.reads_in_place(0) || !(p_.b_constant || p_.windows)) return;
    const std::int64_t layout[] = {p_.n, p_.steps, p_.step_depth, p_.b_row, p_.b_column, p_.b_step, p_.windows};
    kept_ = p_.kept->find(host_, {p_.b, p_.b_size, p_.b_constant, layout, static_cast<std::size_t>(panels() * panel_elements()) * sizeof(T)},
                          [&](void* packed) { pack_all(static_cast<T*>(packed)); });
  }

  /// Each thread packs the panels that it multiplies with all rows; a group of them shares what is read of the left operand.
  void over_panels(std::int64_t threads) {
    const std::int64_t fitting = std::clamp<std::int64_t>(kGroupElements / std::max<std::int64_t>(1, panel_elements()), 1, kPanelGroup);
    const std::int64_t group = std::clamp<std::int64_t>(panels() / (2 * threads), 1, fitting);
    each((panels() + group - 1) / group, [&](std::int64_t low, std::int64_t high) {
      Scratch memory;
      T* packed = kept_ ? nullptr : static_cast<T*>(memory.take(static_cast<std::size_t>(group * panel_elements()) * sizeof(T)));
      for (std::int64_t g = low; g < high; ++g) {
        const std::int64_t first = g * group, last = std::min(panels(), first + group);
        if (kept_) packed = static_cast<T*>(kept_.get()) + first * panel_elements();
        blocks(first, last, packed, 0, p_.m, packs() ? packed : nullptr);
      }
    });
  }

  /// Few panels: all are packed first, then threads share their rows; and the panels, when there are few rows.
  void over_rows(std::int64_t threads) {
    Scratch memory;
    T* packed = static_cast<T*>(kept_ ? kept_.get() : memory.take(static_cast<std::size_t>(panels() * panel_elements()) * sizeof(T)));
    if (packs()) pack_all(packed);
    const std::int64_t tiles = (p_.m + height_ - 1) / height_;
    const std::int64_t parts = packs_rows_ || tiles >= 4 * threads ? 1 : panels();
    const std::int64_t chunks = std::clamp<std::int64_t>((4 * threads + parts - 1) / parts, 1, tiles);
    const std::int64_t rows = (tiles + chunks - 1) / chunks * height_;
    each(parts * chunks, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t task = low; task < high; ++task) {
        const std::int64_t first = parts == 1 ? 0 : task % parts, last = parts == 1 ? panels() : first + 1, row = task / parts * rows;
        if (row < p_.m) blocks(first, last, packed + first * panel_elements(), row, std::min(p_.m, row + rows));
      }
    });
  }

  /// Packs as many rows as stay in cache with what they are multiplied with, and multiplies them with all panels.
  void packed_blocks(std::int64_t first, std::int64_t last, const T* packed, std::int64_t row, std::int64_t end) const {
    const std::int64_t rows = std::max(kFinishedRows, kCachedElements / 2 / std::max<std::int64_t>(1, depth_) / kFinishedRows * kFinishedRows);
    Scratch memory;
    T* own = static_cast<T*>(memory.take(static_cast<std::size_t>(std::min(rows, end - row) * depth_) * sizeof(T)));
    Multiplier mine(*this);
    mine.packs_rows_ = false, mine.a_ = own;
    Ahead nothing;
    for (; row < end; row += rows) {
      const std::int64_t stop = std::min(end, row + rows);
      p_.kernels->pack_rows({row, stop - row, 0, 0, 0, p_.steps}, own);
      mine.first_row_ = row;
      for (std::int64_t panel = first; panel < last; ++panel) mine.block(panel, packed + (panel - first) * panel_elements(), nullptr, row, stop, nothing);
    }
  }

  /// Multiplies rows with panels that lie packed one after the other: as many rows at a time as stay in cache. Each panel is packed to
  /// `to_pack`, if given, in front of its first rows.
  void blocks(std::int64_t first, std::int64_t last, const T* packed, std::int64_t row, std::int64_t end, T* to_pack = nullptr) const {
    if (packs_rows_) return packed_blocks(first, last, packed, row, end);
    Scratch places;
    auto* table = p_.windows ? static_cast<std::int64_t*>(places.take(static_cast<std::size_t>(p_.steps * kFinishedRows) * sizeof(std::int64_t))) : nullptr;
    const std::int64_t rows = p_.windows ? kFinishedRows : std::max(kFinishedRows, kCachedElements / std::max<std::int64_t>(1, depth_) / kFinishedRows * kFinishedRows);
    Ahead next_group(bytes_of(last), calls(end - row));
    for (const std::int64_t start = row; row < end; row += rows) {
      const std::int64_t stop = std::min(end, row + rows);
      if (table) place_rows(row, stop, table);
      for (std::int64_t panel = first; panel < last; ++panel) {
        const std::int64_t place = (panel - first) * panel_elements();
        if (to_pack && row == start && !panels_.reads_in_place(panel)) panels_.pack(panel, to_pack + place);
        Ahead next_panel(row == start ? bytes_of(panel + 1) : std::span<const std::byte>(), calls(stop - row));
        block(panel, packed + place, table, row, stop, panel + 1 < last ? next_panel : next_group);
      }
    }
  }

  /// Calls of the microkernel for so many rows of a panel.
  std::int64_t calls(std::int64_t rows) const { return std::max<std::int64_t>(1, (rows + height_ - 1) / height_ * ((depth_ + pass_ - 1) / pass_)); }

  /// The bytes that the panel is read from first; none when they do not lie side by side.
  std::span<const std::byte> bytes_of(std::int64_t panel) const {
    if (panel >= panels() || p_.windows) return {};
    const T* from = nullptr;
    if (kept_) from = static_cast<const T*>(kept_.get()) + panel * panel_elements();
    else if (packs() && p_.b && p_.b_row == 1 && p_.b_column == depth_ && (panel + 1) * width_ <= p_.n) from = static_cast<const T*>(p_.b) + panel * panel_elements();
    return from ? std::as_bytes(std::span(from, static_cast<std::size_t>(panel_elements()))) : std::span<const std::byte>();
  }

  void block(std::int64_t panel, const T* packed, const std::int64_t* table, std::int64_t row, std::int64_t end, Ahead& ahead) const {
    const std::int64_t column = panel * width_, columns = std::min(width_, p_.n - column);
    const bool in_place = panels_.reads_in_place(panel);
    const T* b = dots_ || in_place ? static_cast<const T*>(p_.b) + column * p_.b_column : packed;
    const std::int64_t b_row = in_place ? p_.b_row : width_;
    if (c_) return product(b, b_row, table, row, end, c_ + (row - first_row_of_c_) * p_.c_row + column, p_.c_row, columns, ahead);
    Scratch memory;
    T* tile = static_cast<T*>(memory.take(static_cast<std::size_t>(kFinishedRows * width_) * sizeof(T)));
    for (; row < end; row += kFinishedRows) {
      const std::int64_t rows = std::min(kFinishedRows, end - row);
      product(b, b_row, table, row, row + rows, tile, width_, columns, ahead);
      p_.kernels->finish({row, rows, column, columns, 0, p_.steps}, tile);
    }
  }

  using Variant = MatrixKernel::Variant;

  const T* row_at(std::int64_t row) const { return a_ + (row - first_row_) * a_row_; }

  void product(const T* b, std::int64_t b_row, const std::int64_t* table, std::int64_t row, std::int64_t end, T* c, std::int64_t c_row, std::int64_t columns, Ahead& ahead) const {
    if (p_.windows) return window_product(b, table, end - row, c, c_row, columns);
    if (dots_) return dot_product(b, row, end, c, c_row, columns);
    for (; row < end; row += kFinishedRows, c += kFinishedRows * c_row) few_rows(b, b_row, row, std::min(end, row + kFinishedRows), c, c_row, columns, ahead);
  }

  /// All passes over so many rows that their sums stay in the first-level cache.
  void few_rows(const T* b, std::int64_t b_row, std::int64_t row, std::int64_t end, T* c, std::int64_t c_row, std::int64_t columns, Ahead& ahead) const {
    const auto [function, height, width] = kernel_.variant(columns);
    const void* step[1 + kMostRows];
    for (std::int64_t k = 0; k == 0 || k < depth_; k += pass_)
      for (std::int64_t r = row; r < end; r += height) {
        step[0] = b + k * b_row;
        for (std::int64_t i = 0; i < height; ++i) step[1 + i] = row_at(std::min(r + i, end - 1)) + k;
        ahead.fetch();
        function(step, 1, b_row, c + (r - row) * c_row, c_row, std::min(pass_, depth_ - k), std::min(height, end - r), columns, k > 0);
      }
  }

  void dot_product(const T* b, std::int64_t row, std::int64_t end, T* c, std::int64_t c_row, std::int64_t columns) const {
    const auto [height, width] = kernel_.dot_tile;
    const void *a_rows[kMostRows], *b_columns[kMostRows];
    for (std::int64_t k = 0; k == 0 || k < depth_; k += kDotDepth)
      for (std::int64_t j = 0; j < columns; j += width) {
        for (std::int64_t l = 0; l < width; ++l) b_columns[l] = b + std::min(j + l, columns - 1) * p_.b_column + k;
        for (std::int64_t r = row; r < end; r += height) {
          for (std::int64_t i = 0; i < height; ++i) a_rows[i] = row_at(std::min(r + i, end - 1)) + k;
          kernel_.dot(a_rows, b_columns, c + (r - row) * c_row + j, c_row, std::min(kDotDepth, depth_ - k), std::min<std::int64_t>(height, end - r),
                      std::min<std::int64_t>(width, columns - j), k > 0);
        }
      }
  }

  /// Writes where the rows start at each step; those past the last one are zero.
  void place_rows(std::int64_t row, std::int64_t end, std::int64_t* table) const {
    p_.kernels->place_rows({row, end - row, 0, 0, 0, p_.steps}, table);
    for (std::int64_t s = 0; s < p_.steps; ++s) std::fill(table + s * kFinishedRows + end - row, table + (s + 1) * kFinishedRows, -1);
  }

  /// Passes over several steps whose runs are short, or over parts of long runs.
  void window_product(const T* b, const std::int64_t* table, std::int64_t rows, T* c, std::int64_t c_row, std::int64_t columns) const {
    const Variant tile = kernel_.variant(columns);
    const std::int64_t together = std::clamp<std::int64_t>(kWindowDepth / std::max<std::int64_t>(1, p_.step_depth), 1, kMostSteps), groups = (p_.steps + together - 1) / together;
    const std::int64_t steps = (p_.steps + groups - 1) / groups, depth = even_pass(p_.step_depth, kWindowDepth);
    for (std::int64_t step = 0; step < p_.steps; step += steps)
      for (std::int64_t k = 0; k == 0 || k < p_.step_depth; k += depth)
        for (std::int64_t r = 0; r < rows; r += tile.height) {
          const Tile part{r, std::min(tile.height, rows - r), 0, columns, step, std::min(steps, p_.steps - step)};
          window_pass(tile, part, table, k, std::min(depth, p_.step_depth - k), b, c + r * c_row, c_row);
        }
  }

  /// Multiplies a part of the runs of a few rows at those steps where not all of them are zero.
  void window_pass(const Variant& tile, const Tile& part, const std::int64_t* table, std::int64_t k, std::int64_t depth, const T* b, T* c, std::int64_t c_row) const {
    alignas(64) static constexpr T kZeros[kWindowDepth + 4]{};
    const void* steps[kMostSteps * (1 + kMostRows)];
    const void** entry = steps;
    for (std::int64_t s = part.step; s < part.step + part.steps; ++s) {
      const std::int64_t* places = table + s * kFinishedRows + part.row;
      bool any = false;
      for (std::int64_t i = 0; i < tile.height; ++i) {
        any = any || places[i] >= 0;
        entry[1 + i] = places[i] >= 0 ? a_ + places[i] + k : kZeros;
      }
      if (!any) continue;
      entry[0] = b + (s * p_.step_depth + k) * width_;
      entry += 1 + tile.height;
    }
    const std::int64_t count = (entry - steps) / (1 + tile.height);
    const bool first = part.step == 0 && k == 0;
    if (count || first) tile.function(steps, count, width_, c, c_row, depth, part.rows, part.columns, !first);
  }

  const HostServices& host_;
  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  T* c_;                           // from first_row_ of the result on
  Panels<T> panels_;
  std::int64_t width_, height_, depth_, pass_;
  double work_;
  bool parallel_, dots_;
  bool packs_rows_ = false;        // a thread packs the rows that it multiplies
  const T* a_ = nullptr;
  std::int64_t a_row_ = 0, first_row_ = 0, first_row_of_c_ = 0;
  PackedOperand::Memory kept_;
};

/// Runs a chain: both right operands are packed once.
template <class T>
void run_chain(const HostServices& host, const MatrixKernel& kernel, const ProductChain& chain, bool parallel) {
  const std::int64_t rows = chain.first.m, columns = chain.first.n;
  if (rows == 0 || chain.second.n == 0) return;
  Multiplier<T> first(host, kernel, chain.first, parallel), second(host, kernel, chain.second, parallel);
  Scratch left, first_panels, second_panels;
  first.prepare_rows(left);
  const T *keys = first.pack_for_blocks(first_panels), *values = second.pack_for_blocks(second_panels);
  const std::int64_t height = kernel.tile.rows, fitting = std::clamp(kCachedElements / std::max<std::int64_t>(1, columns), height, kFinishedRows) / height * height;
  const auto blocks = [&](std::int64_t low, std::int64_t high) {
    Scratch memory;
    T* panel = static_cast<T*>(memory.take(static_cast<std::size_t>(fitting * columns) * sizeof(T)));
    for (std::int64_t row = low * fitting; row < std::min(rows, high * fitting); row += fitting) {
      const std::int64_t end = std::min(rows, row + fitting);
      const Tile tile{row, end - row, 0, columns, 0, chain.first.steps};
      const std::int64_t seen = chain.seen ? std::clamp<std::int64_t>(chain.seen(tile), 1, columns) : columns;
      first.rows_to(panel, keys, row, end, seen);
      chain.between(tile, panel);
      second.rows_from(panel, values, chain.second_row + row, chain.second_row + end, seen);
    }
  };
  if (const std::int64_t count = (rows + fitting - 1) / fitting; parallel && count > 1) host.parallel_for(0, count, 1, blocks);
  else blocks(0, count);
}

}  // namespace

void multiply(const HostServices& host, const MatrixKernel& kernel, const ProductChain& chain, bool parallel) {
  if (kernel.dtype == DType::f64) run_chain<double>(host, kernel, chain, parallel);
  else run_chain<float>(host, kernel, chain, parallel);
}

void multiply(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel) {
  if (kernel.dtype == DType::f64) Multiplier<double>(host, kernel, product, parallel).run();
  else Multiplier<float>(host, kernel, product, parallel).run();
}

}  // namespace tenon::llvm_backend
