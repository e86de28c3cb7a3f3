// Matrix products around the generated microkernel: packing, blocking, threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ahead.h"
#include "core/base/dtype.h"
#include "matrix/amx_kernel.h"
#include "matrix/dot_kernel.h"
#include "matrix/microkernel.h"
#include "matrix/outer_kernel.h"
#include "matrix/transposition.h"
#include "matrix/winograd.h"
#include "packed_operand.h"
#include "tenon/host_services.h"

namespace tenon::llvm_backend {

/// A part of a product: rows and columns of the result, and of the sum `steps` of its first loop.
struct Tile {
  std::int64_t row = 0, rows = 0, column = 0, columns = 0, step = 0, steps = 0;
};

/// The kernels that were generated for one product. Called on many threads at once.
class TileKernels {
 public:
  virtual ~TileKernels() = default;
  /// Writes tile.rows rows of the left operand, one after the other.
  virtual void pack_rows(const Tile& tile, void* panel) const = 0;
  /// Writes where tile.rows rows start at each step of the sum, from the first element of the left operand; −1 where they are zero.
  /// Those of one step lie beside each other, the next step's kFinishedRows further.
  virtual void place_rows(const Tile& tile, std::int64_t* table) const = 0;
  /// Writes where runs of columns of the right operand start at each of the places [tile.row, + tile.rows) of the sum, at most kPlacedTogether of them, from its first element; −1 where
  /// they are zero. Those of one tap lie beside each other, the next tap's kPlacesOfTable further.
  virtual void place_columns(const Tile& tile, std::int64_t* table) const = 0;
  /// Writes a panel of the right operand: for each step of the sum a row as wide as the microkernel's tile.
  virtual void pack_columns(const Tile& tile, void* panel) const = 0;
  /// Takes tile.rows rows of the product, as wide as the microkernel's tile.
  virtual void finish(const Tile& tile, void* product) const = 0;
  /// Whether `sum_up` is wanted of the rows of the result.
  virtual bool sums_up() const = 0;
  /// Adds up columns of tile.rows rows of the result, which are in memory, as part tile.step of the sums: each row once.
  virtual void sum_up(const Tile& tile) const = 0;
  /// Sets `reads` to what `finish` reads of memory for the tile, as far as it pays to have that fetched before.
  virtual void find_reads(const Tile& tile, std::vector<Ahead>& reads) const = 0;
};

/// A right operand whose columns lie in runs, a run for each tap and step of the sum: which columns the taps, and the elements of a run, are. A
/// column is that of its tap plus that of its element.
struct RunsOfColumns {
  std::vector<std::int64_t> of_taps, of_run;
};

/// c[i, j] = sum over k of a[i, k] * b[k, j], k < steps * step_depth. Strides in elements; columns of c are contiguous.
/// Where `a`, `b` or `c` is null, `kernels` do it. With `windows`, row i of a at each step is a run of step_depth elements somewhere
/// in `a`, and the rows of b are `b_row` apart inside a step. Of bfloat16 an element of a or b is a pair of the sum, side by side; with `b_halves` the pair's
/// elements lie in rows of b, whose strides are then in single ones (beside windows all of b's are). With `runs`, elements of a column of a are contiguous, and a row of b is runs of
/// columns somewhere in `b`.
struct MatrixProduct {
  std::int64_t m = 0, n = 0, steps = 0, step_depth = 1;
  const void* a = nullptr;
  std::int64_t a_row = 0, a_column = 0;
  const void* a_source = nullptr;  // where `kernels` read what they pack of a, a row every a_row elements; null where that is not known
  const void* b = nullptr;
  std::int64_t b_row = 0, b_column = 0;
  bool b_halves = false;
  std::optional<DType> b_widened;  // the half precision of b, where it is not that of a; b is then transposed, and m at most kDotRows
  bool windows = false;
  std::int64_t b_step = 0;
  const RunsOfColumns* runs = nullptr;
  std::int64_t picture_height = 0, picture_width = 0;  // when rows (with `runs`, places of the sum) are pixels, and windows 3 x 3 pixels that step by one
  std::int64_t square_side = kSmallSquare;    // of the squares that pictures are transformed by
  void* c = nullptr;
  std::int64_t c_row = 0;
  const TileKernels* kernels = nullptr;
  PackedOperand* kept = nullptr;  // keeps the packed b, whose bytes are b_size from `b` on
  std::size_t b_size = 0;
  bool b_constant = false;
};

/// The compiled code of one dtype: of the parts (matrix_code.h) that a program asked for.
struct MatrixKernel {
  MicroKernel function = nullptr, fetching = nullptr, plain = nullptr;  // over windows; which fetches what it is told; which fetches nothing
  Transposition transposition = nullptr;
  Pairing pairing = nullptr;
  TileShape tile;
  MicroKernel narrow = nullptr, fetching_narrow = nullptr;
  TileShape narrow_tile;
  MicroKernel streaming = nullptr;
  TileShape streaming_tile;
  MicroKernel fetching_streaming = nullptr;  // with Fetches::far_ahead
  int transposed_rows = 1;
  OuterKernel outer = nullptr, outer_columns = nullptr, outer_narrow = nullptr;  // of tile; those that read no other columns, of streaming_tile and narrow_tile
  MicroKernel row = nullptr, row_of_columns = nullptr;  // one row: of row_tile, and as wide as streaming_tile, which reads no other columns
  TileShape row_tile;
  std::int64_t sum_step = kUnrolled;  // of what a microkernel sums, taken together: passes of other lengths are slower
  DotKernel dot = nullptr, dot_row = nullptr, dot_of_f16 = nullptr, dot_of_bf16 = nullptr;  // of dot_tile and dot_row_tile; with a right operand of half precision, of dot_tile
  WindowDotKernel window_dots = nullptr;  // of dot_tile
  TileShape dot_tile, dot_row_tile;
  WinogradCode small_square, large_square;
  WinogradSumCode square_sums;
  DType dtype = DType::f32;
  bool has_avx2_vectors = false;
  void (*enter)() = nullptr;  // of tile registers (amx_kernel.h), and `leave`
  void (*leave)() = nullptr;

  /// Microkernels then read rows that lie equally far apart, and those of windows are copied.
  bool in_tile_registers() const { return sum_step == kAmxPairs; }
  /// Whether rows in windows and the columns of a product are multiplied by dot products.
  bool multiplies_by_dots(const MatrixProduct& p) const { return window_dots && p.windows && p.b && p.n <= std::min<std::int64_t>(kDotColumns, tile.columns); }
  /// The columns that they read: whole tiles.
  std::int64_t columns_of_dots(const MatrixProduct& p) const { return (p.n + dot_tile.columns - 1) / dot_tile.columns * dot_tile.columns; }
  /// Whether the sum of a product over windows is one chain over blocks of 8 channels: oneDNN's direct convolutions for AVX2 have it where
  /// it has whole blocks, whatever the groups. Those for AVX-512 add up chains over 16 channels, and the sums of others are shorter still.
  bool chains_blocks(const MatrixProduct& p) const {
    return has_avx2_vectors && dtype == DType::f32 && p.step_depth % kChainedChannels == 0 && p.n % kChainedChannels == 0;
  }
  std::int64_t block_channels(const MatrixProduct& p) const { return chains_blocks(p) ? kChainedChannels : kAddedChannels; }
  static constexpr std::int64_t kChainedChannels = 8, kAddedChannels = 16;

  /// to[k * to_stride + i] = from[i * from_stride + k] for so many rows of `length` elements.
  template <class T>
  void transpose(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows, std::int64_t length) const {
    const std::int64_t lanes = transposed_rows, whole_rows = rows / lanes * lanes, whole_length = length / lanes * lanes;
    for (std::int64_t i = 0; i < whole_rows; i += lanes) transposition(from + i * from_stride, from_stride, to + i, to_stride, whole_length);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t k = i < whole_rows ? whole_length : 0; k < length; ++k) to[k * to_stride + i] = from[i * from_stride + k];
  }

  const WinogradCode& winograd(std::int64_t side) const { return side == kSmallSquare ? small_square : large_square; }

  struct OuterVariant {
    OuterKernel kernel;
    std::int64_t height;
  };
  /// Of sums over runs of so many columns.
  OuterVariant outer_variant(std::int64_t columns) const {
    if (columns <= narrow_tile.columns) return {outer_narrow, narrow_tile.rows};
    if (columns < tile.columns) return {outer_columns, streaming_tile.rows};
    return {outer, tile.rows};
  }

  /// The register tile for so many columns: what computes it over windows, what fetches ahead, and what fetches nothing where that was compiled.
  struct Variant {
    MicroKernel function, fetching, plain;
    std::int64_t height, width;

    /// Fetching takes a tenth of the time of multiplying, also where nothing is left to fetch.
    MicroKernel beside(const Ahead& ahead) const { return ahead.empty() ? plain : fetching; }
  };
  Variant variant(std::int64_t columns) const {
    if (columns <= narrow_tile.columns) return {narrow, fetching_narrow, fetching_narrow, narrow_tile.rows, narrow_tile.columns};
    return {function, fetching, plain, tile.rows, tile.columns};
  }
};

/// Tile registers are in use by this thread, where the kernel's microkernels need that.
class TileRegisters {
 public:
  explicit TileRegisters(const MatrixKernel& kernel) : leave_(kernel.leave) {
    if (kernel.enter) kernel.enter();
  }
  ~TileRegisters() {
    if (leave_) leave_();
  }
  TileRegisters(const TileRegisters&) = delete;

 private:
  void (*leave_)();
};

/// Up to so many rows less one, a b that is not transposed is read where it lies: packing costs more.
inline constexpr std::int64_t kFewRows = 12;
static_assert(kFewRows <= kDotRows);
/// Whether a tile's row of so many columns is several lines of the cache, as with AVX-512. One with AVX2 is a line.
template <class T>
constexpr bool is_wide_row(std::int64_t columns) {
  return columns * static_cast<std::int64_t>(sizeof(T)) >= 256;
}
/// The most rows of a register tile.
inline constexpr int kMostRows = 32;
/// The most elements of the sum that one pass takes.
inline constexpr std::int64_t kDepth = 256;
/// Elements of each pass, when passes of at most `most` share `depth` evenly: whole multiples of what is taken together.
inline std::int64_t even_pass(std::int64_t depth, std::int64_t most, std::int64_t together = kUnrolled) {
  const std::int64_t passes = std::max<std::int64_t>(1, (depth + most - 1) / most);
  return std::max(together, ((depth + passes - 1) / passes + together - 1) / together * together);
}

/// Multiplications from which threads pay; and elements of a right operand that is read from memory for few rows.
inline constexpr double kParallelProduct = 768 * 1024, kParallelElements = 128 * 1024;

/// Computes rows of one product whose operands are ready. Called on many threads at once.
class RowsOfProduct {
 public:
  virtual ~RowsOfProduct() = default;
  /// Rows [row, end): `finishing` takes their tiles, unless they go to `c`, where row 0 would lie.
  virtual void compute(std::int64_t row, std::int64_t end, const TileKernels& finishing, void* c) const = 0;
};

/// Makes the operands of a product over windows ready, and has `body` compute its rows as it likes.
void multiply_rows(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel, const std::function<void(const RowsOfProduct&)>& body);

/// Computes one product; with `parallel` on the host's threads. Scratch memory is kept by each thread for its next product.
void multiply(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel);

}  // namespace tenon::llvm_backend
