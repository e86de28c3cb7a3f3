// The inner product of matrix multiplication: a tile of C in registers over the whole of K.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>

#include "core/base/dtype.h"
#include "isa/target.h"

namespace tenon::llvm_backend {

/// Rows and columns of C that stay in registers. The sizes were measured: 6 by 4 vectors with 32 registers, 6 by 2 with 16.
struct TileShape {
  int rows = 0;
  int columns = 0;
};
TileShape tile_shape(const Target& target, DType dtype);
/// Rows of a result that are finished together; so many rows of a table of windows lie beside each other.
inline constexpr std::int64_t kFinishedRows = 48;
/// Whether products of the dtype are summed in tile registers (amx_kernel.h).
bool has_tile_registers(const Target& target, DType dtype);
/// More rows and half the columns, for results with few columns.
TileShape narrow_tile_shape(const Target& target, DType dtype);
/// Few rows, for products that memory bounds.
TileShape streaming_tile_shape(const Target& target, DType dtype);
/// One row of some tiles' columns: a vector times a matrix computes nothing for rows that are not there, and reads rows in longer runs.
TileShape row_tile_shape(const Target& target, DType dtype);
/// The columns of the tile, by lanes of float32 in a vector register.
int tile_columns(unsigned lanes, DType dtype);

/// What becomes of what C holds: it is left out, added to the sum at its end, or what the sum starts from, as if it went on.
enum class Before : std::int64_t { left_out = 0, added = 1, continued = 2 };
inline Before added_if(bool adds) { return adds ? Before::added : Before::left_out; }

/// The generated function: c[0..rows) x [0..columns) = the sum over `count` steps of a * b, with `before`. What each step
/// multiplies stands in 1 + tile.rows addresses of `steps`: b, then as many contiguous rows as the tile has, all of them readable; those
/// from `rows` on are read and left out. A step takes the elements [first, end) of its rows, one after the other: `block` of them at all
/// steps before the next ones, whole blocks in all. Row k of b starts at b + k * b_stride, b_block further for each element of the blocks
/// before, and has at least as many readable elements as the tile has columns. Strides are in elements. `rows` and `columns`
/// are at least 1 and at most the tile's. All sums run in this order, step by step. Where it is emitted to fetch ahead it fetches
/// lines_fetched(block) lines into the second-level cache at each step, which start at `ahead` and `ahead_stride` bytes apart.
using MicroKernel = void (*)(const void* const* steps, std::int64_t count, std::int64_t b_stride, void* c, std::int64_t c_stride,
                             std::int64_t first, std::int64_t end, std::int64_t rows, std::int64_t columns, Before before, const void* ahead, std::int64_t ahead_stride,
                             std::int64_t block, std::int64_t b_block);

/// What a microkernel fetches: the rows of a packed b that it multiplies soon, or what the caller says, spread over the sum: a burst of
/// as many lines would stop the multiplications until most of them have come. Far ahead it fetches more, which only few rows have time for.
enum class Fetches { nothing, own_rows, ahead, far_ahead };

/// What a microkernel reads of b's rows: as much as the tile is wide, or only the columns that it computes.
enum class Reads { whole_rows, columns };

/// How the pairs of bfloat16 that are one element lie in b: side by side, or below each other in rows of single ones, b_stride apart.
enum class Pairs { packed, in_rows };

/// Steps of a sum that run unrolled.
inline constexpr std::int64_t kUnrolled = 4;

/// Lines that are fetched ahead with each unrolled part. Until a line has come from behind the second-level cache it holds one of the dozen
/// fill buffers of the first, through which b comes meanwhile: with two lines a part, products ran 4 % slower (Xeon with AVX-512).
constexpr std::int64_t lines_of_part(Fetches fetches) { return fetches == Fetches::far_ahead ? 4 : fetches == Fetches::ahead ? 1 : 0; }

/// Lines that are fetched ahead while `elements` are summed.
inline std::int64_t lines_fetched(std::int64_t elements, Fetches fetches = Fetches::ahead) { return elements / kUnrolled * lines_of_part(fetches); }

/// Adds the function `name` for float32, float64 or bfloat16, with one of these shapes. For bfloat16 an element of a or b is two of the sum, side by side;
/// c is float32.
void emit_microkernel(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, const std::string& name, Fetches fetches, Reads reads = Reads::whole_rows,
                      Pairs pairs = Pairs::packed);

}  // namespace tenon::llvm_backend
