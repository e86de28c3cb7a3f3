// Convolutions of 3 x 3 taps at stride 1 as Winograd's: for squares of 2 x 2 pixels 16 matrix products where the direct way takes 36, for
// 4 x 4 pixels 36 for 144.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "ahead.h"
#include "tiles/tile.h"
#include "launch/scratch.h"
#include "matrix/winograd.h"
#include "panels.h"
#include "square_grid.h"

namespace tenon::llvm_backend {

/// Runs one product whose rows are the pixels of pictures.
template <class T>
class WinogradProduct {
 public:
  /// Computes rows [row, end) of a panel the direct way: where a result of this way is not finite, that one's may be.
  using Direct = std::function<void(std::int64_t panel, std::int64_t row, std::int64_t end)>;

  WinogradProduct(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel, Direct direct)
      : host_(host), kernel_(kernel), p_(product), panels_(kernel, product), direct_(std::move(direct)), parallel_(parallel), width_(kernel.tile.columns),
        u_width_(panels_.count() == 1 ? kernel.variant(product.n).width : width_), depth_(product.step_depth), grid_(product), places_(winograd_places(grid_.side)), code_(kernel.winograd(grid_.side)),
        zeros_(static_cast<std::size_t>(depth_)), lines_(grid_.lines(p_.m)) {}

  void run() {
    const std::int64_t threads = parallel_ ? host_.thread_count() : 1, group = panels_.count() * u_elements() <= kCachedWeights ? lines_of_group(threads) : 0;
    find_kept_weights();
    if (!u_ && group && threads > 1 && panels_.count() == 1) return with_own_weights(threads, group);
    Scratch weights;
    if (!u_) u_ = transformed_weights(weights);
    if (group) each(groups_of(group), [&](std::int64_t g) { alone(lines_of(g, group)); });
    else
      for (std::int64_t line = 0, step = std::clamp<std::int64_t>(kSharedSquares / grid_.in_line, 1, lines_); line < lines_; line += step)
        together({line, std::min(lines_, line + step)});
  }

 private:
  static constexpr std::int64_t kMostPlaces = kMostWinogradPlaces, kMostPixels = kLargeSquare * kLargeSquare;
  /// The most squares that a thread multiplies with all weights at once (whole tiles of 4, 6 or 8 rows), if so many elements of them stay in
  /// its cache; and those that all threads share.
  static constexpr std::int64_t kSquares = 48, kSquareElements = 160 * 1024, kSharedSquares = 256;
  /// Elements of weights that stay in a second-level cache beside the squares.
  static constexpr std::int64_t kCachedWeights = 512 * 1024;

  /// The fewest squares that a thread multiplies by itself: it loses less with tiles that are not full than with what others have written.
  static constexpr std::int64_t kFewestSquares = 8;

  struct Lines {
    std::int64_t first, last;
  };

  /// Lines that a thread takes at once, as many for each thread where there are few of them. None where threads would have too few.
  std::int64_t lines_of_group(std::int64_t threads) const {
    const auto split = [](std::int64_t count, std::int64_t parts) { return (count + parts - 1) / parts; };
    const std::int64_t most = std::clamp<std::int64_t>(std::min(kSquares, kSquareElements / (places_ * depth_)) / grid_.in_line, 1, lines_), groups = split(lines_, most);
    if (threads == 1 || groups >= 2 * threads) return most;
    const std::int64_t group = split(lines_, split(groups, threads) * threads);
    return group * grid_.in_line >= kFewestSquares ? group : 0;
  }

  /// The transformed squares, or products of one panel, from one square on: those of a place lie `row` apart, places `stride`.
  struct Rows {
    T* first;
    std::int64_t row, stride;
    Rows at(std::int64_t square) const { return {first + square * row, row, stride}; }
  };

  std::int64_t squares(const Lines& lines) const { return (lines.last - lines.first) * grid_.in_line; }
  /// Takes memory for so many transformed squares. For one panel the places of a square lie side by side: they are written to few pages.
  /// For several, which each read them again, the squares of a place do.
  Rows take_squares(std::int64_t count, Scratch& memory) const {
    const std::int64_t length = depth_ + kApart<T>;
    T* first = static_cast<T*>(memory.take(static_cast<std::size_t>(count * (places_ * length + kApart<T>) + 2 * kApart<T> * places_) * sizeof(T)));
    if (panels_.count() == 1) return {first, places_ * length + kApart<T>, length};
    return {first, length, count * length + 2 * kApart<T>};
  }
  std::int64_t u_elements() const { return places_ * depth_ * u_width_; }

  template <class Body>
  void each(std::int64_t count, Body body) {
    auto range = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) body(i);
    };
    if (!parallel_ || count < 2) return range(0, count);
    host_.parallel_for(0, count, 1, range);
  }

  // ---- weights

  std::size_t bytes_of_weights() const { return static_cast<std::size_t>(panels_.count() * u_elements()) * sizeof(T); }

  void transform_weights(T* to) {
    each(panels_.count(), [&](std::int64_t panel) {
      Scratch taps;
      T* packed = static_cast<T*>(taps.take(static_cast<std::size_t>(panels_.elements()) * sizeof(T)));
      panels_.pack(panel, packed);
      for (std::int64_t row = 1; u_width_ < width_ && row < kWinogradTaps * depth_; ++row)
        std::memmove(packed + row * u_width_, packed + row * width_, static_cast<std::size_t>(u_width_) * sizeof(T));
      const std::int64_t pass = Panels<T>::elements_of_pass(kernel_, p_);
      for (std::int64_t k = 0; k < depth_; k += pass) {
        const std::int64_t elements = std::min(pass, depth_ - k) * u_width_;
        code_.weights(packed + k * kWinogradTaps * u_width_, elements, to + panel * u_elements() + k * u_width_, depth_ * u_width_, elements);
      }
    });
  }

  void find_kept_weights() {
    if (!p_.kept) return;
    const std::int64_t layout[] = {p_.n, p_.steps, p_.step_depth, p_.b_row, p_.b_column, p_.b_step, places_};
    kept_ = p_.kept->find(host_, {p_.b, p_.b_size, p_.b_constant, layout, bytes_of_weights()}, [&](void* to) { transform_weights(static_cast<T*>(to)); });
    u_ = static_cast<const T*>(kept_.get());
  }

  const T* transformed_weights(Scratch& memory) {
    T* own = static_cast<T*>(memory.take(bytes_of_weights()));
    transform_weights(own);
    return own;
  }

  // ---- pixels

  /// Where the pixels of two rows of the result start at each tap, from place_rows.
  struct Places {
    const std::int64_t* table;
    std::int64_t steps;
    std::int64_t at(std::int64_t row, std::int64_t tap) const {
      constexpr std::int64_t kRows = kFinishedRows;
      return table[row / kRows * steps * kRows + tap * kRows + row % kRows];
    }
  };

  Places places_of(std::int64_t line, Scratch& memory) const {
    constexpr std::int64_t kRows = kFinishedRows;
    const std::int64_t rows = grid_.pixel_rows(line) * grid_.width, first = grid_.first_pixel(line);
    const std::int64_t pieces = (rows + kRows - 1) / kRows;
    auto* table = static_cast<std::int64_t*>(memory.take(static_cast<std::size_t>(pieces * p_.steps * kRows) * sizeof(std::int64_t)));
    for (std::int64_t i = 0; i < pieces; ++i)
      p_.kernels->place_rows({first + i * kRows, std::min(kRows, rows - i * kRows), 0, 0, 0, p_.steps}, table + i * p_.steps * kRows);
    return {table, p_.steps};
  }

  /// Transforms the squares of a line to their place among those of `lines`.
  void transform_line(std::int64_t line, const Rows& squares) const {
    Scratch memory;
    const Places places = places_of(line, memory);
    Scratch pixels_memory;
    auto* const pixels = static_cast<const void**>(pixels_memory.take(static_cast<std::size_t>((grid_.side + 2) * grid_.pixels_in_row()) * sizeof(void*)));
    grid_.find_pixels(line, static_cast<const T*>(p_.a), zeros_.data(), [&](std::int64_t row, std::int64_t tap) { return places.at(row, tap); }, pixels);
    T* to = squares.first;
    const void* square[kMostPlaces];
    for (std::int64_t x = 0; x < grid_.width; x += grid_.side, to += squares.row) {
      grid_.take_square(pixels, x, square);
      code_.input(square, to, squares.stride, depth_);
    }
  }

  /// The pixels of lines that a thread may well take next, where they lie close together.
  Ahead pixels_ahead(const Lines& lines) const {
    if (lines.first >= lines.last) return {};
    constexpr std::int64_t kCentre = kWinogradTaps / 2 * kFinishedRows;
    const std::int64_t first = grid_.first_pixel(lines.first), last = grid_.first_pixel(lines.last - 1) + grid_.pixel_rows(lines.last - 1) * grid_.width - 1;
    std::int64_t table[kWinogradTaps * kFinishedRows], places[2];
    for (const int end : {0, 1}) {
      p_.kernels->place_rows({end ? last : first, 1, 0, 0, 0, p_.steps}, table);
      places[end] = table[kCentre];
      if (places[end] < 0) return {};
    }
    const std::int64_t elements = places[1] + depth_ - places[0];
    if (elements <= 0 || elements > 2 * (last - first + 1) * depth_) return {};
    return Ahead(std::as_bytes(std::span(static_cast<const T*>(p_.a) + places[0], static_cast<std::size_t>(elements))));
  }

  // ---- products

  std::int64_t groups_of(std::int64_t group) const { return (lines_ + group - 1) / group; }
  Lines lines_of(std::int64_t number, std::int64_t group) const { return {number * group, std::min(lines_, (number + 1) * group)}; }

  /// Each thread transforms the weights of the one panel for itself: waiting for what another thread writes, into memory that this one has just read, takes
  /// longer than writing it.
  void with_own_weights(std::int64_t threads, std::int64_t group) {
    std::atomic<std::int64_t> next = 0;
    each(threads, [&](std::int64_t) {
      std::int64_t g = next.fetch_add(1, std::memory_order_relaxed);
      if (g >= groups_of(group)) return;
      Scratch weights;
      WinogradProduct mine(*this);
      mine.u_ = mine.transformed_weights(weights);
      for (; g < groups_of(group); g = next.fetch_add(1, std::memory_order_relaxed)) mine.alone(lines_of(g, group));
    });
  }

  /// All of a few lines on one thread: transformed squares and products stay in its cache.
  void alone(const Lines& lines) const {
    Scratch squares_memory, products_memory;
    const std::int64_t count = squares(lines);
    const Rows v = take_squares(count, squares_memory);
    Ahead next = pixels_ahead({lines.last, std::min(lines_, lines.last + lines.last - lines.first)});
    const Rows m{static_cast<T*>(products_memory.take(static_cast<std::size_t>(places_ * (count * u_width_ + 2 * kApart<T>)) * sizeof(T))), u_width_, count * u_width_ + 2 * kApart<T>};
    for (std::int64_t line = lines.first; line < lines.last; ++line) transform_line(line, v.at((line - lines.first) * grid_.in_line));
    for (std::int64_t panel = 0; panel < panels_.count(); ++panel) {
      for (std::int64_t place = 0; place < places_; ++place) multiply_place(v, count, panel, place, m.first + place * m.stride, m.row, next);
      for (std::int64_t line = lines.first; line < lines.last; ++line) finish_line(panel, line, m.at((line - lines.first) * grid_.in_line));
    }
  }

  /// Many lines on all threads, step by step: weights that do not stay in a cache are read once for all of them.
  void together(const Lines& lines) {
    Scratch squares_memory, products_memory;
    const std::int64_t count = squares(lines), row = panels_.count() * width_ + kApart<T>, stride = count * row + 2 * kApart<T>;
    const Rows v = take_squares(count, squares_memory);
    const Rows m{static_cast<T*>(products_memory.take(static_cast<std::size_t>(places_ * stride) * sizeof(T))), row, stride};
    each(lines.last - lines.first, [&](std::int64_t i) { transform_line(lines.first + i, v.at(i * grid_.in_line)); });
    const std::int64_t tasks = places_ * panels_.count();
    each(tasks, [&](std::int64_t task) {
      const std::int64_t place = task / panels_.count(), panel = task % panels_.count(), next = std::min(task + 1, tasks - 1);
      Ahead weights(std::as_bytes(std::span(weights_of(next / panels_.count(), next % panels_.count()), static_cast<std::size_t>(depth_ * u_width_))));
      multiply_place(v, count, panel, place, m.first + place * stride + panel * width_, row, weights);
    });
    each(lines.last - lines.first, [&](std::int64_t i) {
      for (std::int64_t panel = 0; panel < panels_.count(); ++panel) {
        const Rows mine = m.at(i * grid_.in_line);
        finish_line(panel, lines.first + i, {mine.first + panel * width_, mine.row, mine.stride});
      }
    });
  }

  const T* weights_of(std::int64_t place, std::int64_t panel) const { return u_ + panel * u_elements() + place * depth_ * u_width_; }

  /// Fetches `ahead` meanwhile.
  void multiply_place(const Rows& v, std::int64_t count, std::int64_t panel, std::int64_t place, T* m, std::int64_t m_row, Ahead& ahead) const {
    const std::int64_t columns = std::min(width_, p_.n - panel * width_);
    const auto tile = kernel_.variant(columns);
    const T *from = v.first + place * v.stride, *u = weights_of(place, panel);
    const std::int64_t depth = even_pass(depth_, kDepth);
    const void* step[1 + kMostRows];
    for (std::int64_t k = 0; k < depth_; k += depth)
      for (std::int64_t r = 0; r < count; r += tile.height) {
        step[0] = u + k * u_width_;
        for (std::int64_t i = 0; i < tile.height; ++i) step[1 + i] = from + std::min(r + i, count - 1) * v.row + k;
        const std::int64_t length = std::min(depth, depth_ - k);
        const MicroKernel function = tile.beside(ahead);
        const Ahead::Part part = ahead.next(lines_fetched(length), u);
        function(step, 1, u_width_, m + r * m_row, m_row, 0, length, std::min(tile.height, count - r), tile.width, added_if(k > 0), part.first, part.stride, length, 0);
      }
  }

  /// Where the rows of a panel's results go.
  struct Results {
    T* first;
    std::int64_t row;
  };

  /// Transforms the products of one line. True when all results are finite.
  bool transform_products(std::int64_t height, std::int64_t columns, Rows m, const Results& results, T* nowhere) const {
    std::int64_t unbounded = 0;
    void* to[kMostPixels];
    for (std::int64_t x = 0; x < grid_.width; x += grid_.side, m.first += m.row) {
      for (std::int64_t i = 0; i < grid_.side * grid_.side; ++i) {
        const std::int64_t down = i / grid_.side, right = x + i % grid_.side;
        to[i] = down < height && right < grid_.width ? results.first + (down * grid_.width + right) * results.row : nowhere;
      }
      unbounded |= code_.output(m.first, m.stride, to, columns);
    }
    return !unbounded;
  }

  /// Gives the results of a line, which are a part of sums over rows.
  void finish_line(std::int64_t panel, std::int64_t line, const Rows& m) const {
    const std::int64_t row = grid_.first_pixel(line), height = grid_.pixel_rows(line), rows = height * grid_.width;
    const std::int64_t column = panel * width_, columns = std::min(width_, p_.n - column);
    give_line(panel, row, height, column, columns, m);
    if (p_.kernels->sums_up()) p_.kernels->sum_up({row, rows, column, columns, line, p_.steps});
  }

  void give_line(std::int64_t panel, std::int64_t row, std::int64_t height, std::int64_t column, std::int64_t columns, const Rows& m) const {
    Scratch memory;
    const std::int64_t rows = height * grid_.width;
    const std::int64_t lanes = kernel_.transposed_rows, whole = (columns + lanes - 1) / lanes * lanes;
    const bool in_place = p_.c && whole == columns;
    T* nowhere = static_cast<T*>(memory.take(static_cast<std::size_t>((in_place ? 1 : rows + 1) * width_) * sizeof(T)));
    T* tile = nowhere + width_;
    T* c = p_.c ? static_cast<T*>(p_.c) + row * p_.c_row + column : nullptr;
    if (!transform_products(height, whole, m, in_place ? Results{c, p_.c_row} : Results{tile, width_}, nowhere)) return direct_(panel, row, row + rows);
    if (!p_.c) return p_.kernels->finish({row, rows, column, columns, 0, p_.steps}, tile);
    for (std::int64_t i = 0; i < rows && !in_place; ++i) std::memcpy(c + i * p_.c_row, tile + i * width_, static_cast<std::size_t>(columns) * sizeof(T));
  }

  const HostServices& host_;
  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  Panels<T> panels_;
  Direct direct_;
  bool parallel_;
  std::int64_t width_, u_width_, depth_;  // u_width_: of rows of weights
  SquareGrid grid_;
  std::int64_t places_;
  const WinogradCode& code_;
  std::vector<T> zeros_;
  std::int64_t lines_;
  PackedOperand::Memory kept_;
  const T* u_ = nullptr;
};

}  // namespace tenon::llvm_backend
