// The gradient of the weights of 3 x 3 taps at stride 1 as Winograd's: 16 sums of outer products over squares of 2 x 2 results, where the direct way has
// 36 for them.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "launch/scratch.h"
#include "matrix_product.h"
#include "square_grid.h"
#include "tiles/tile.h"

namespace tenon::llvm_backend {

/// Adds up parts of a product with `runs` whose places are the results of a convolution. A part is added up by one thread.
template <class T>
class WinogradSums {
 public:
  /// What is added up: rows of the result, elements of the runs of columns, lines of the pictures. None of them is empty.
  struct Part {
    std::int64_t row, rows, column, columns, first_line, end_line;
  };

  WinogradSums(const MatrixKernel& kernel, const MatrixProduct& p, std::int64_t run)
      : kernel_(kernel), p_(p), code_(kernel.square_sums), grid_(p), lanes_(kernel.transposed_rows), width_(kernel.tile.columns), zeros_(static_cast<std::size_t>(std::max(p.m, run))) {}

  static constexpr std::int64_t kPlaces = winograd_places(kSmallSquare);

  const SquareGrid& grid() const { return grid_; }
  /// Whether it adds up so many rows or columns: they fill a vector register.
  bool takes(std::int64_t count) const { return count >= lanes_; }

  /// Writes the sums of each tap, `tap_apart`, and each panel of columns, `panel_apart`: rows as wide as a tile. False where one is not finite: the direct
  /// way's may be.
  bool add_up(const Part& part, T* sums, std::int64_t tap_apart, std::int64_t panel_apart) const {
    Scratch memory;
    const std::int64_t squares = (part.end_line - part.first_line) * grid_.in_line, block = std::min(kSquares, squares);
    const Square results = square(block, part.rows), pixels = square(block, part.columns);
    const std::int64_t panels = (part.columns + width_ - 1) / width_, place = part.rows * width_ + kApart<T>, products = panels * kPlaces * place;
    T* const u = static_cast<T*>(memory.take(static_cast<std::size_t>(results.elements + pixels.elements + products) * sizeof(T)));
    T *const v = u + results.elements, *const m = v + pixels.elements;
    if (part.columns % lanes_ != 0) std::fill_n(m, products, T(0));  // whole vectors are read of them
    Line line(*this, part.first_line, part.column);
    for (std::int64_t first = 0; first < squares; first += block) {
      const std::int64_t count = std::min(block, squares - first);
      for (std::int64_t i = 0; i < count; ++i) transform(part, first + i, line, {u + i * results.row, results.place}, {v + i * pixels.row, pixels.place});
      for (std::int64_t panel = 0; panel < panels; ++panel)
        for (std::int64_t p = 0; p < kPlaces; ++p)
          multiply({u + p * results.place, results.row, part.rows}, {v + p * pixels.place + panel * width_, pixels.row, std::min(width_, part.columns - panel * width_)}, count,
                   m + (panel * kPlaces + p) * place, added_if(first > 0));
    }
    bool finite = true;
    for (std::int64_t panel = 0; panel < panels; ++panel) finite = take_taps(part, m + panel * kPlaces * place, place, std::min(width_, part.columns - panel * width_), sums + panel * panel_apart, tap_apart) && finite;
    return finite;
  }

 private:
  /// Squares that are multiplied together: their transforms stay in a second-level cache beside the sums.
  static constexpr std::int64_t kSquares = 32;

  /// Where transformed squares lie: those of a place side by side, `row` apart.
  struct Square {
    std::int64_t row, place, elements;
  };
  static Square square(std::int64_t count, std::int64_t length) {
    const std::int64_t row = (length + kApart<T> - 1) / kApart<T> * kApart<T>, place = count * row + kApart<T>;
    return {row, place, kPlaces * place};
  }

  /// The pixels that a line of squares reads.
  class Line {
   public:
    Line(const WinogradSums& of, std::int64_t line, std::int64_t column)
        : of_(of), from_(static_cast<const T*>(of.p_.b) + column), places_(static_cast<std::size_t>((2 * of.grid_.width + kPlacesOfTable - 1) / kPlacesOfTable * kWinogradTaps * kPlacesOfTable)),
          pixels_(static_cast<std::size_t>((kSmallSquare + 2) * of.grid_.pixels_in_row())) {
      find(line);
    }

    void move_to(std::int64_t line) {
      if (line != line_) find(line);
    }
    const void* const* pixels() const { return pixels_.data(); }

   private:
    std::int64_t& place(std::int64_t result, std::int64_t tap) { return places_[static_cast<std::size_t>((result / kPlacesOfTable * kWinogradTaps + tap) * kPlacesOfTable + result % kPlacesOfTable)]; }

    void find(std::int64_t line) {
      line_ = line;
      const SquareGrid& grid = of_.grid_;
      const std::int64_t first = grid.first_pixel(line), count = grid.pixel_rows(line) * grid.width;
      for (std::int64_t i = 0; i < count; i += kPlacedTogether) of_.p_.kernels->place_columns({first + i, std::min(kPlacedTogether, count - i), 0, 0, 0, kWinogradTaps}, &place(i, 0));
      grid.find_pixels(line, from_, of_.zeros_.data(), [&](std::int64_t result, std::int64_t tap) { return place(result, tap); }, pixels_.data());
    }

    const WinogradSums& of_;
    const T* from_;
    std::vector<std::int64_t> places_;
    std::vector<const void*> pixels_;
    std::int64_t line_ = -1;
  };

  struct Target {
    T* first;
    std::int64_t place;
  };

  /// Transforms what the results of a square are weighed with, and the pixels that they read.
  void transform(const Part& part, std::int64_t number, Line& pixels, const Target& u, const Target& v) const {
    const std::int64_t line = part.first_line + number / grid_.in_line, x = number % grid_.in_line * kSmallSquare;
    pixels.move_to(line);
    std::array<const void*, kPlaces> square;
    grid_.take_square(pixels.pixels(), x, square.data());
    code_.input(square.data(), v.first, v.place, part.columns);
    std::array<const void*, kSmallSquare * kSmallSquare> results;
    const std::int64_t first = grid_.first_pixel(line) + x, rows = grid_.pixel_rows(line);
    for (std::int64_t i = 0; i < kSmallSquare * kSmallSquare; ++i) {
      const std::int64_t down = i / kSmallSquare, right = i % kSmallSquare;
      const bool is_there = down < rows && x + right < grid_.width;
      results[static_cast<std::size_t>(i)] = is_there ? static_cast<const T*>(p_.a) + (first + down * grid_.width + right) * p_.a_column + part.row : zeros_.data();
    }
    code_.results(results.data(), u.first, u.place, part.rows);
  }

  /// Transformed squares at one place: `length` elements of each, `row` apart.
  struct Operand {
    const T* first;
    std::int64_t row, length;
  };

  /// Adds the outer products of so many squares.
  void multiply(const Operand& u, const Operand& v, std::int64_t count, T* m, Before before) const {
    std::array<OuterStep, kSquares> steps;
    for (std::int64_t i = 0; i < count; ++i) steps[static_cast<std::size_t>(i)] = {i * u.row, i * v.row};
    const auto [kernel, height] = kernel_.outer_variant(v.length);
    for (std::int64_t r = 0; r < u.length; r += height) kernel(steps.data(), count, u.first + r, m + r * width_, width_, v.first, 0, std::min(height, u.length - r), v.length, before);
  }

  bool take_taps(const Part& part, const T* m, std::int64_t place, std::int64_t columns, T* sums, std::int64_t tap_apart) const {
    const std::int64_t whole = (columns + lanes_ - 1) / lanes_ * lanes_;
    std::int64_t unbounded = 0;
    std::array<void*, kWinogradTaps> rows;
    for (std::int64_t r = 0; r < part.rows; ++r) {
      for (std::int64_t tap = 0; tap < kWinogradTaps; ++tap) rows[static_cast<std::size_t>(tap)] = sums + tap * tap_apart + r * width_;
      unbounded |= code_.taps(m + r * width_, place, rows.data(), whole);
    }
    return !unbounded;
  }

  const MatrixKernel& kernel_;
  const MatrixProduct& p_;
  const WinogradSumCode& code_;
  SquareGrid grid_;
  std::int64_t lanes_, width_;
  std::vector<T> zeros_;
};

}  // namespace tenon::llvm_backend
