// The squares of pixels by which Winograd's convolutions go over pictures.
#pragma once

#include <algorithm>
#include <cstdint>

#include "matrix/winograd.h"
#include "matrix_product.h"

namespace tenon::llvm_backend {

/// Elements between transformed squares, and between places of them, beyond their length: what is a power of two apart crowds into few sets of the caches.
template <class T>
inline constexpr std::int64_t kApart = 64 / sizeof(T);

/// Squares of results that cover the pictures of a product, line by line: a line is as many rows of pixels as a square has, or what is left of a picture.
struct SquareGrid {
  std::int64_t height, width, side, lines_in_picture, in_line;  // of the pictures of results; squares of a line

  explicit SquareGrid(const MatrixProduct& p)
      : height(p.picture_height), width(p.picture_width), side(p.square_side), lines_in_picture((height + side - 1) / side), in_line((width + side - 1) / side) {}

  /// Lines of so many pixels.
  std::int64_t lines(std::int64_t pixels) const { return pixels / (height * width) * lines_in_picture; }
  /// The number of the first pixel of a line; of the one behind the last line, that of all pixels.
  std::int64_t first_pixel(std::int64_t line) const { return (line / lines_in_picture * height + line % lines_in_picture * side) * width; }
  std::int64_t pixel_rows(std::int64_t line) const { return std::min(side, height - line % lines_in_picture * side); }

  /// Pixels in each row of those that a line of squares reads: squares share some with their neighbours.
  std::int64_t pixels_in_row() const { return in_line * side + 2; }

  /// Finds what a line of squares reads of the pictures, side + 2 rows of pixels: `at` says where the pixel starts that a result (by its number in the line)
  /// reads with a tap, from `from` on; −1 where that is zero.
  template <class T, class At>
  void find_pixels(std::int64_t line, const T* from, const T* zeros, At at, const void** pixels) const {
    const std::int64_t rows = pixel_rows(line);
    for (std::int64_t i = 0; i < side + 2; ++i)
      for (std::int64_t j = 0; j < pixels_in_row(); ++j) {
        const std::int64_t down = std::max<std::int64_t>(0, i - 2), right = std::max<std::int64_t>(0, j - 2);
        const std::int64_t place = down < rows && right < width ? at(down * width + right, (i - down) * 3 + j - right) : -1;
        *pixels++ = place < 0 ? zeros : from + place;
      }
  }

  /// Copies those of the square whose results start in column x: winograd_places(side), row by row.
  void take_square(const void* const* pixels, std::int64_t x, const void** square) const {
    for (std::int64_t i = 0; i < side + 2; ++i, square += side + 2) std::copy_n(pixels + i * pixels_in_row() + x, side + 2, square);
  }
};

}  // namespace tenon::llvm_backend
