// One matrix product as threads compute it: what is packed, which part of the result each of them takes, passes over the sum.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "ahead.h"
#include "block_sizes.h"
#include "few_rows.h"
#include "tiles/tile.h"
#include "launch/scratch.h"
#include "left_operand.h"
#include "matrix_product.h"
#include "panels.h"
#include "scaled_row.h"
#include "shares.h"
#include "swapped_product.h"
#include "window_rows.h"
#include "winograd_product.h"

namespace tenon::llvm_backend {

template <class T>
class Multiplier {
 public:
  Multiplier(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& p, bool parallel)
      : host_(host), kernel_(kernel), p_(p), c_(static_cast<T*>(p.c)), panels_(kernel, p), width_(kernel.tile.columns), height_(kernel.tile.rows), depth_(p.steps * p.step_depth),
        pass_(even_pass(depth_, p.step_depth == 1 ? matrix_pass() : kPassDepth, kernel.sum_step)),
        work_(static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(depth_)),
        dots_(p.b && !p.windows && !p.b_halves && p.b_row == 1 && p.b_column != 1 && p.m <= kDotRows), streams_(panels_.reads_in_place(0) || panels_.reads_one_row()),
        parallel_(parallel && (work_ >= kParallelProduct || ((dots_ || streams_) && static_cast<double>(p.n) * static_cast<double>(depth_) >= kParallelElements))), sums_up_(p.kernels && p.kernels->sums_up()) {}

  void run() {
    if (p_.m == 0 || p_.n == 0) return;
    if (p_.picture_width > 0 && p_.step_depth >= kernel_.transposed_rows) return run_transformed();
    const std::int64_t threads = parallel_ ? host_.thread_count() : 1;
    packs_rows_ = gathers() || (!p_.windows && !p_.a && p_.m >= 4 * threads * kFinishedRows && panels() * panel_elements() <= kReadAgain);
    Scratch rows, turned;
    std::optional<SwappedProduct<T>> swapped;
    prepare_rows(rows);
    keep_panels();
    if (dots_ && kernel_.in_tile_registers() && p_.m > 1) swapped_ = &swapped.emplace(kernel_, p_, a_, a_row_, pass_, turned);
    if (streams_) return over_columns(threads);
    if (!packs_rows_ && (threads == 1 || panels() >= 2 * threads)) over_panels(threads);
    else over_rows(threads);
  }

  // ---- rows of a product over windows, as others ask for them

  void by_rows(const std::function<void(const RowsOfProduct&)>& body) {
    if (p_.m == 0 || p_.n == 0) return;
    Scratch rows, memory;
    packs_rows_ = gathers();
    prepare_rows(rows);
    keep_panels();
    body(Rows(*this, packed_from(0, memory)));
  }

  // ---- blocks of rows of a chain

  /// Makes the left operand ready to be read: by rows, in memory.
  void prepare_rows(Scratch& memory) {
    const LeftOperand<T> left(kernel_, p_, p_.m >= 4 * height_ && panels() >= 4);
    a_ = static_cast<const T*>(p_.a), a_row_ = packs_rows_ ? depth_ : left.row_stride();
    if (p_.windows || packs_rows_ || left.in_place()) return;
    a_ = left.pack(memory, [&](std::int64_t count, auto body) { each(count, body); });
  }

  /// Packs the right operand where that is needed.
  const T* pack_for_blocks(Scratch& memory) {
    if (!packs()) return nullptr;
    T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>(panels() * panel_elements()) * sizeof(T)));
    pack_from(0, packed);
    return packed;
  }

  /// Writes columns [first, last) of rows of the product to a block, c_row apart; and maybe more columns.
  void columns_to(T* block, const T* packed, std::int64_t row, std::int64_t end, std::int64_t first, std::int64_t last) const {
    Multiplier mine(*this);
    mine.c_ = block - first, mine.first_row_of_c_ = row;
    const std::int64_t panel = first / width_;
    mine.blocks(panel, (last + width_ - 1) / width_, packed ? packed + panel * panel_elements() : nullptr, row, end);
  }

  /// Adds to tiles, one a panel, kFinishedRows rows apart, the product of a block, rows `stride` apart, with rows [first, last) of b.
  void add_to_tiles(T* tiles, const T* block, std::int64_t stride, const T* packed, std::int64_t row, std::int64_t end, std::int64_t first, std::int64_t last) const {
    Multiplier mine(*this);
    mine.a_ = block, mine.a_row_ = stride, mine.first_row_ = row, mine.depth_ = last - first, mine.pass_ = even_pass(last - first, matrix_pass(), kernel_.sum_step), mine.adds_ = first > 0;
    Ahead nothing;
    for (std::int64_t panel = 0; panel < panels(); ++panel, tiles += kFinishedRows * width_) {
      const bool in_place = panels_.reads_in_place(panel);
      const T* b = in_place ? static_cast<const T*>(p_.b) + panel * width_ + first * p_.b_row : packed + panel * panel_elements() + first * width_;
      mine.few_rows(b, in_place ? p_.b_row : width_, row, end, tiles, width_, std::min(width_, p_.n - panel * width_), nothing);
    }
  }

  /// Takes a tile of sums of the product, each row of which is multiplied by its factor first.
  void finish_tile(T* tile, const T* factors, std::int64_t panel, std::int64_t row, std::int64_t rows) const {
    const std::int64_t column = panel * width_, columns = std::min(width_, p_.n - column);
    for (std::int64_t i = 0; i < rows; ++i) {
      T* const from = tile + i * width_;
      if (c_) scaled(from, factors[i], c_ + (row + i) * p_.c_row + column, columns);
      else scaled(from, factors[i], from, width_);
    }
    if (!c_) finishing_->finish({row, rows, column, columns, 0, p_.steps}, tile);
  }

  /// Leaves dot products to others: b is packed.
  void pack_always() { dots_ = false; }
  std::int64_t panels() const { return panels_.count(); }
  std::int64_t width() const { return width_; }

  /// Computes rows of the product from a panel with the same rows of the left operand, which lie densely and are zero from `depth` on.
  void rows_from(const T* panel, const T* packed, std::int64_t row, std::int64_t end, std::int64_t depth) const {
    Multiplier mine(*this);
    mine.a_ = panel, mine.a_row_ = depth_, mine.first_row_ = row, mine.depth_ = depth;
    mine.blocks(0, panels(), packed, row, end);
  }

 private:
  class Rows final : public RowsOfProduct {
   public:
    Rows(const Multiplier& of, const T* packed) : of_(of), packed_(packed) {}

    void compute(std::int64_t row, std::int64_t end, const TileKernels& finishing, void* c) const override {
      Multiplier mine(of_);
      mine.c_ = static_cast<T*>(c), mine.finishing_ = &finishing;
      mine.blocks(0, mine.panels(), packed_, row, end);
    }

   private:
    const Multiplier& of_;
    const T* packed_;
  };

  void run_transformed() {
    a_ = static_cast<const T*>(p_.a), sums_up_ = false;  // lines of squares are its parts
    WinogradProduct<T>(host_, kernel_, p_, parallel_, [this](std::int64_t panel, std::int64_t row, std::int64_t end) {
      Scratch memory;
      T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>(panel_elements()) * sizeof(T)));
      panels_.pack(panel, packed);
      blocks(panel, panel + 1, packed, row, end);
    }).run();
  }

  std::int64_t panel_elements() const { return panels_.elements(); }
  std::int64_t matrix_pass() const { return is_wide_row<T>(width_) ? kWidePassDepth : kPassDepth; }

  template <class Body>
  void each(std::int64_t count, Body body) {
    if (!parallel_ || count < 2) return body(std::int64_t{0}, count);
    host_.parallel_for(0, count, 1, body);
  }

  // ---- blocks

  bool gathers() const { return p_.windows && kernel_.in_tile_registers(); }

  /// Writes rows of the left operand one after the other.
  void write_rows(std::int64_t row, std::int64_t end, T* to) const {
    if (gathers()) WindowRows<T>(kernel_, p_).gather(row, end, to);
    else p_.kernels->pack_rows({row, end - row, 0, 0, 0, p_.steps}, to);
  }

  bool packs() const { return !kept_ && !dots_; }

  void pack_from(std::int64_t panel, T* packed) {
    panels_.pack_from(panel, parallel_ ? host_.thread_count() : 1, packed, [&](std::int64_t count, auto body) { each(count, body); });
  }

  /// Packs the right operand for later calls too, or finds it packed. What is no constant has to be hashed for that, which reads all of it
  /// once more: packing a plain matrix beside its product costs less.
  void keep_panels() {
    if (!p_.kept || dots_ || streams_ || !(p_.b_constant || p_.windows)) return;
    const std::int64_t layout[] = {p_.n, p_.steps, p_.step_depth, p_.b_row, p_.b_column, p_.b_step, p_.windows};
    kept_ = p_.kept->find(host_, {p_.b, p_.b_size, p_.b_constant, layout, static_cast<std::size_t>(panels() * panel_elements()) * sizeof(T)},
                          [&](void* packed) { pack_from(0, static_cast<T*>(packed)); });
  }

  /// Each thread packs the panels that it multiplies with all rows; a group of them shares what is read of the left operand. Threads
  /// share the rows of the last panels, one a thread: those are packed first, and wait for memory, as nothing is multiplied meanwhile.
  void over_panels(std::int64_t threads) {
    const std::int64_t most = in_slabs() ? panels() : kernel_.in_tile_registers() ? kGroupForTiles : kPanelGroup;
    const std::int64_t fitting = std::clamp<std::int64_t>(kGroupElements / std::max<std::int64_t>(1, in_slabs() ? slab_depth() * width_ : panel_elements()), 1, most);
    const std::int64_t group = std::clamp<std::int64_t>(panels() / (2 * threads), 1, fitting);
    const std::int64_t shared = threads > 1 && p_.m >= 2 * kPieceRows && !in_slabs() ? std::min(panels() / 2, threads) : 0, whole = panels() - shared;
    Scratch memory;
    const T* packed = shared ? packed_from(whole, memory) : nullptr;
    const std::int64_t pieces = (p_.m + kPieceRows - 1) / kPieceRows;
    Shares shares((whole + group - 1) / group, shared * pieces, threads);
    each(threads, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t thread = low; thread < high; ++thread)
        shares.take(thread, [&](std::int64_t g) { all_rows(g * group, std::min(whole, (g + 1) * group)); }, [&](std::int64_t piece) {
          const std::int64_t panel = piece / pieces, row = piece % pieces * kPieceRows;
          blocks(whole + panel, whole + panel + 1, packed + panel * panel_elements(), row, std::min(p_.m, row + kPieceRows));
        });
    });
  }

  /// Multiplies panels with all rows, after packing them where that is needed.
  void all_rows(std::int64_t first, std::int64_t last) const {
    Scratch memory;
    if (kept_) return blocks(first, last, static_cast<const T*>(kept_.get()) + first * panel_elements(), 0, p_.m);
    if (in_slabs()) return slabs(first, last);
    T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>((last - first) * panel_elements()) * sizeof(T)));
    blocks(first, last, packed, 0, p_.m, packs() ? packed : nullptr);
  }

  /// Whether the left operand's part of a block of rows would not stay in cache.
  bool in_slabs() const { return packs() && p_.step_depth == 1 && !is_wide_row<T>(width_) && p_.m > kFinishedRows && depth_ * kFinishedRows > kCachedElements; }
  std::int64_t slab_depth() const { return kPassesOfSlab * pass_; }

  /// Multiplies panels with all rows, a slab of the sum after the other.
  void slabs(std::int64_t first, std::int64_t last) const {
    Scratch memory, sums_memory;
    const std::int64_t slab = slab_depth(), rows = std::max(kFinishedRows, kCachedElements / 2 / slab / kFinishedRows * kFinishedRows);
    T* const packed = static_cast<T*>(memory.take(static_cast<std::size_t>((last - first) * slab * width_) * sizeof(T)));
    T* const sums = c_ ? nullptr : static_cast<T*>(sums_memory.take(static_cast<std::size_t>((last - first) * p_.m * width_) * sizeof(T)));
    Multiplier part(*this);
    for (std::int64_t k = 0; k < depth_; k += slab) {
      part.a_ = a_ + k, part.depth_ = std::min(slab, depth_ - k), part.adds_ = k > 0;
      for (std::int64_t panel = first; panel < last; ++panel) panels_.pack_steps(panel, k, part.depth_, packed + (panel - first) * slab * width_);
      for (std::int64_t row = 0; row < p_.m; row += rows)
        for (std::int64_t panel = first; panel < last; ++panel)
          part.add_slab(panel, packed + (panel - first) * slab * width_, row, std::min(p_.m, row + rows), sums ? sums + (panel - first) * p_.m * width_ : nullptr);
    }
    for (std::int64_t panel = first; panel < last; ++panel)
      for (std::int64_t row = 0; row < p_.m; row += kFinishedRows) {
        const Tile place{row, std::min(kFinishedRows, p_.m - row), panel * width_, std::min(width_, p_.n - panel * width_), 0, p_.steps};
        if (sums) finishing_->finish(place, sums + ((panel - first) * p_.m + row) * width_);
        sum_up(row, row + place.rows, place.column, place.columns);
      }
  }

  /// Adds rows of a panel's product to the result, or to the sums of the panel.
  void add_slab(std::int64_t panel, const T* packed, std::int64_t row, std::int64_t end, T* sums) const {
    const std::int64_t column = panel * width_, columns = std::min(width_, p_.n - column);
    Ahead nothing;
    const TileRegisters registers(kernel_);
    if (sums) product(packed, width_, nullptr, row, end, sums + row * width_, width_, kernel_.variant(columns).width, nothing);
    else product(packed, width_, nullptr, row, end, c_ + row * p_.c_row + column, p_.c_row, columns, nothing);
  }

  /// The panels from `first` on, packed.
  const T* packed_from(std::int64_t first, Scratch& memory) {
    if (kept_) return static_cast<const T*>(kept_.get()) + first * panel_elements();
    T* packed = static_cast<T*>(memory.take(static_cast<std::size_t>((panels() - first) * panel_elements()) * sizeof(T)));
    if (packs()) pack_from(first, packed);
    return packed;
  }

  /// Few rows: threads share the columns of b, each of which is read once, in long runs.
  void over_columns(std::int64_t threads) {
    const FewRows<T> product(kernel_, p_, a_, a_row_, c_);
    const std::int64_t whole = panels_.reads_one_row() ? panels() : p_.n / width_, run = std::clamp<std::int64_t>((whole + threads - 1) / threads, 1, product.panels_together());
    each((whole + run - 1) / run, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t i = low; i < high; ++i) product.panels(i * run, std::min(whole, (i + 1) * run));
    });
    if (whole < panels()) all_rows(whole, panels());
  }

  /// Few panels: all are packed first, then threads share their rows; and the panels, when there are few rows.
  void over_rows(std::int64_t threads) {
    Scratch memory;
    const T* packed = packed_from(0, memory);
    const std::int64_t tiles = (p_.m + height_ - 1) / height_;
    const std::int64_t parts = packs_rows_ || tiles >= 4 * threads ? 1 : panels();
    const std::int64_t chunks = std::clamp<std::int64_t>((4 * threads + parts - 1) / parts, 1, tiles);
    const std::int64_t whole = sums_up_ ? kFinishedRows : height_, rows = ((tiles + chunks - 1) / chunks * height_ + whole - 1) / whole * whole;
    each(parts * chunks, [&](std::int64_t low, std::int64_t high) {
      for (std::int64_t task = low; task < high; ++task) {
        const std::int64_t first = parts == 1 ? 0 : task % parts, last = parts == 1 ? panels() : first + 1, row = task / parts * rows;
        if (row < p_.m) blocks(first, last, packed + first * panel_elements(), row, std::min(p_.m, row + rows));
      }
    });
  }

  /// Packs as many rows as stay in cache with what they are multiplied with, and multiplies them with all panels. Meanwhile the rows that
  /// come next are fetched: they may well be of this thread's next range.
  void packed_blocks(std::int64_t first, std::int64_t last, const T* packed, std::int64_t row, std::int64_t end) const {
    const std::int64_t rows = rows_to_pack();
    Scratch memory;
    T* own = static_cast<T*>(memory.take(static_cast<std::size_t>(std::min(rows, end - row) * depth_) * sizeof(T)));
    Multiplier mine(*this);
    mine.packs_rows_ = false, mine.a_ = own;
    for (; row < end; row += rows) {
      const std::int64_t stop = std::min(end, row + rows);
      Ahead next = rows_ahead(stop, std::min(p_.m, stop + rows));
      write_rows(row, stop, own);
      mine.first_row_ = row;
      for (std::int64_t panel = first; panel < last; ++panel) mine.block(panel, packed + (panel - first) * panel_elements(), nullptr, row, stop, next);
    }
  }

  /// Rows that are packed together: few where the panels stay in cache, and can be read again for each of them.
  std::int64_t rows_to_pack() const {
    if (panels() * panel_elements() <= kCachedElements) return kFinishedRows;
    return std::max(kFinishedRows, kCachedElements / 2 / std::max<std::int64_t>(1, depth_) / kFinishedRows * kFinishedRows);
  }

  /// Fetches what rows are packed from.
  Ahead rows_ahead(std::int64_t row, std::int64_t end) const {
    if (!p_.a_source || row >= end) return {};
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
    return {static_cast<const std::byte*>(p_.a_source) + row * p_.a_row * kBytes, depth_ * kBytes, p_.a_row * kBytes, end - row};
  }

  /// Multiplies rows with panels that lie packed one after the other: as many rows at a time as stay in cache. Each panel is packed to
  /// `to_pack`, if given, in front of its first rows.
  void blocks(std::int64_t first, std::int64_t last, const T* packed, std::int64_t row, std::int64_t end, T* to_pack = nullptr) const {
    if (packs_rows_) return packed_blocks(first, last, packed, row, end);
    std::optional<WindowRows<T>> windows;
    if (p_.windows) windows.emplace(kernel_, p_);
    const std::int64_t rows = p_.windows ? kFinishedRows : std::max(kFinishedRows, kCachedElements / std::max<std::int64_t>(1, depth_) / kFinishedRows * kFinishedRows);
    Ahead next_group(bytes_of(last, to_pack));
    for (const std::int64_t start = row; row < end; row += rows) {
      const std::int64_t stop = std::min(end, row + rows);
      if (windows) windows->place(row, stop);
      for (std::int64_t panel = first; panel < last; ++panel) {
        const std::int64_t place = (panel - first) * panel_elements();
        if (to_pack && row == start && !panels_.reads_in_place(panel)) panels_.pack(panel, to_pack + place);
        Ahead next_panel(row == start ? bytes_of(panel + 1, to_pack) : std::span<const std::byte>());
        block(panel, packed + place, windows ? &*windows : nullptr, row, stop, panel + 1 < last ? next_panel : next_group);
      }
    }
  }

  /// The bytes that the panel is read from first, by whoever packs it or not; none when they do not lie side by side.
  std::span<const std::byte> bytes_of(std::int64_t panel, bool packs) const {
    if (panel >= panels() || p_.windows) return {};
    const T* from = nullptr;
    if (kept_) from = static_cast<const T*>(kept_.get()) + panel * panel_elements();
    else if (packs && p_.b && p_.b_row == 1 && p_.b_column == depth_ && (panel + 1) * width_ <= p_.n) from = static_cast<const T*>(p_.b) + panel * panel_elements();
    return from ? std::as_bytes(std::span(from, static_cast<std::size_t>(panel_elements()))) : std::span<const std::byte>();
  }

  void block(std::int64_t panel, const T* packed, WindowRows<T>* windows, std::int64_t row, std::int64_t end, Ahead& ahead) const {
    const TileRegisters registers(kernel_);
    const std::int64_t column = panel * width_, columns = std::min(width_, p_.n - column);
    const bool in_place = panels_.reads_in_place(panel);
    const void* b = dots_ || in_place ? static_cast<const std::byte*>(p_.b) + column * p_.b_column * b_bytes() : static_cast<const void*>(packed);
    const std::int64_t b_row = in_place ? p_.b_row : width_;
    if (c_) {
      product(b, b_row, windows, row, end, c_ + (row - first_row_of_c_) * p_.c_row + column, p_.c_row, columns, ahead);
      return sum_up(row, end, column, columns);
    }
    Scratch memory;
    T* tile = static_cast<T*>(memory.take(static_cast<std::size_t>(finished_rows() * width_) * sizeof(T)));
    const std::int64_t stored = dots_ ? columns : kernel_.variant(columns).width;  // the tile has room for whole rows
    std::vector<Ahead> reads;
    for (; row < end; row += finished_rows()) {
      const Tile place{row, std::min(finished_rows(), end - row), column, columns, 0, p_.steps};
      finishing_->find_reads(place, reads);
      for (std::size_t i = reads.size(); i-- > 0;) reads[i].before(i + 1 < reads.size() ? reads[i + 1] : ahead);
      product(b, b_row, windows, row, row + place.rows, tile, width_, stored, reads.empty() ? ahead : reads.front());
      finishing_->finish(place, tile);
      sum_up(place.row, place.row + place.rows, column, columns);
    }
  }

  /// Rows that are finished together are a part of sums.
  void sum_up(std::int64_t row, std::int64_t end, std::int64_t column, std::int64_t columns) const {
    for (; sums_up_ && row < end; row += kFinishedRows) finishing_->sum_up({row, std::min(kFinishedRows, end - row), column, columns, row / kFinishedRows, p_.steps});
  }

  using Variant = MatrixKernel::Variant;

  /// Rows that are finished together: whole tiles. The kernel that finishes one column takes kFinishedRows in one block.
  std::int64_t finished_rows() const { return kernel_.in_tile_registers() && p_.n > 1 ? 2 * height_ : kFinishedRows; }

  const T* row_at(std::int64_t row) const { return a_ + (row - first_row_) * a_row_; }

  void product(const void* b, std::int64_t b_row, WindowRows<T>* windows, std::int64_t row, std::int64_t end, T* c, std::int64_t c_row, std::int64_t columns, Ahead& ahead) const {
    if (windows) return windows->multiply(static_cast<const T*>(b), c, c_row, columns);
    if (swapped_) return swapped_->compute(row, end, (static_cast<const T*>(b) - static_cast<const T*>(p_.b)) / p_.b_column, columns, c, c_row);
    if (dots_) return dot_product(b, row, end, c, c_row, columns);
    const std::int64_t some = finished_rows();
    for (; row < end; row += some, c += some * c_row) few_rows(static_cast<const T*>(b), b_row, row, std::min(end, row + some), c, c_row, columns, ahead);
  }

  /// All passes over so many rows that their sums stay in the first-level cache.
  void few_rows(const T* b, std::int64_t b_row, std::int64_t row, std::int64_t end, T* c, std::int64_t c_row, std::int64_t columns, Ahead& ahead) const {
    const auto tile = kernel_.variant(columns);
    const void* step[1 + kMostRows];
    for (std::int64_t k = 0; k == 0 || k < depth_; k += pass_) {
      const std::int64_t length = std::min(pass_, depth_ - k);
      step[0] = b + k * b_row;
      const T* from = row_at(row) + k;
      for (std::int64_t r = row; r < end; r += tile.height, from += tile.height * a_row_) {
        const std::int64_t rows = std::min(tile.height, end - r);
        const T* at = from;
        for (std::int64_t i = 0; i < tile.height; ++i) {
          step[1 + i] = at;
          if (i + 1 < rows) at += a_row_;
        }
        const MicroKernel function = tile.beside(ahead);
        const Ahead::Part part = ahead.next(lines_fetched(length), from);
        function(step, 1, b_row, c + (r - row) * c_row, c_row, 0, length, rows, columns, added_if(adds_ || k > 0), part.first, part.stride, length, 0);
      }
    }
  }

  std::int64_t b_bytes() const { return static_cast<std::int64_t>(p_.b_widened ? size_of(*p_.b_widened) : sizeof(T)); }

  void dot_product(const void* b, std::int64_t row, std::int64_t end, T* c, std::int64_t c_row, std::int64_t columns) const {
    const bool is_row = p_.m == 1 && !p_.b_widened;
    const auto [height, width] = is_row ? kernel_.dot_row_tile : kernel_.dot_tile;
    const DotKernel dot = is_row ? kernel_.dot_row : !p_.b_widened ? kernel_.dot : *p_.b_widened == DType::f16 ? kernel_.dot_of_f16 : kernel_.dot_of_bf16;
    const void *a_rows[kMostRows], *b_columns[kMostRows];
    for (std::int64_t k = 0; k == 0 || k < depth_; k += kDotDepth)
      for (std::int64_t j = 0; j < columns; j += width) {
        for (std::int64_t l = 0; l < width; ++l) b_columns[l] = static_cast<const std::byte*>(b) + (std::min(j + l, columns - 1) * p_.b_column + k) * b_bytes();
        for (std::int64_t r = row; r < end; r += height) {
          for (std::int64_t i = 0; i < height; ++i) a_rows[i] = row_at(std::min(r + i, end - 1)) + k;
          dot(a_rows, b_columns, c + (r - row) * c_row + j, c_row, std::min(kDotDepth, depth_ - k), std::min<std::int64_t>(height, end - r),
                      std::min<std::int64_t>(width, columns - j), k > 0);
        }
      }
  }

  const HostServices& host_;
  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  const TileKernels* finishing_ = p_.kernels;
  T* c_;                           // from first_row_ of the result on
  Panels<T> panels_;
  std::int64_t width_, height_, depth_, pass_;
  double work_;
  bool dots_, streams_;  // few rows: dot products, or b read where it lies
  bool parallel_;
  bool adds_ = false;              // to what the result holds
  bool sums_up_;                   // what is finished
  bool packs_rows_ = false;        // a thread packs the rows that it multiplies
  const T* a_ = nullptr;
  std::int64_t a_row_ = 0, first_row_ = 0, first_row_of_c_ = 0;
  PackedOperand::Memory kept_;
  const SwappedProduct<T>* swapped_ = nullptr;  // where few rows are multiplied in tile registers
};

}  // namespace tenon::llvm_backend
