// Which thread does what of a kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "loops/kernel.h"
#include "schedule/attention_tile.h"

namespace tenon::cuda {

/// Threads of a block, and of a warp.
inline constexpr unsigned kBlock = 256, kWarp = 32;
/// What a thread reads or writes at once, in bytes.
inline constexpr unsigned kVectorBytes = 16;
/// What the memory of a block that warpgroups read starts at a multiple of.
inline constexpr unsigned kSwizzleAlignment = 1024;
/// Threads that share a column: each a warp away from the next, so that the threads of a warp stand side by side. And where there are few
/// columns: those of a block read 32 bytes side by side.
inline constexpr unsigned kColumnTeam = kBlock / kWarp, kLargeColumnTeam = 32;
/// The side of a tile that a block transposes, and how far its rows lie apart: one more, so that columns are read from all banks.
inline constexpr unsigned kTileSide = 32, kTileStride = kTileSide + 1;
/// Points of a row, where they are known, up to which a warp has it; and up to which a team may keep what it computed of it, in registers.
inline constexpr std::int64_t kRowOfWarp = 1024, kKeptRow = 8 * 1024;
/// The same of a column, of which each thread of a large team has so many points.
inline constexpr std::int64_t kKeptByThread = 32, kKeptColumn = kKeptByThread * kLargeColumnTeam;
/// What the threads of a block may share.
inline constexpr std::size_t kSharedBytes = 48 * 1024;

struct Schedule {
  /// points: a thread has a vector of points of the outer loops. rows: a team of threads has one point of them, and shares the last inner loop;
  /// lanes run along it. columns: a team has a vector of points of the outer loops, and shares the last inner loop; lanes run along the last
  /// outer one. tiles: a block has a square of two outer loops; what is contiguous along the first of them passes through memory that it shares.
  /// products: a block has a rectangle of a product, or of attention, which tensor cores sum up.
  enum class Kind { points, rows, columns, tiles, products };
  Kind kind = Kind::points;
  unsigned lanes = 1;                      // points of the vector, along the last loop
  unsigned team = 1;                       // threads of a team: 1, a warp, kColumnTeam, kLargeColumnTeam, or a block
  codegen::Dim units;                      // vectors of points, none of which spans two rows of the last loop; or rows; or tiles
  std::size_t across = 0;                  // of tiles: the outer loop that makes the square with the last one
  std::vector<codegen::OpId> transposed;   // of tiles: loads that pass through shared memory
  std::optional<ProductTile> product;      // of products; of attention its result
  std::optional<AttentionTile> attention;
  std::vector<unsigned> alignments;        // by buffer, in bytes: its first element lies at a multiple
  std::vector<ir::SymbolId> symbols;       // of the graph, in the order of the parameters that give them
  std::vector<bool> numbers;               // by buffer: a single element, which its parameter gives itself; empty: none is
  unsigned runs = 1;                       // that a launch has room for, one behind the other; of more than one a table has what parameters would give

  bool is_number(std::size_t buffer) const { return !numbers.empty() && numbers[buffer]; }
  /// Bytes of shared memory that a launch gives a block.
  unsigned launch_bytes() const { return attention ? attention->shared_bytes() : product ? product->shared_bytes() : 0; }
  /// Of one run.
  codegen::Dim blocks() const { return floor_div(units * codegen::Dim(team) + codegen::Dim(kBlock - 1), codegen::Dim(kBlock)); }
  /// The loop that the lanes of a vector run along.
  const codegen::Loop* lane_loop(const codegen::Kernel& kernel) const;
};

/// Chooses; or says what of the kernel has no code for this target. `starts`: by buffer, elements of its value, which starts at a multiple of
/// kVectorBytes, before its first one; empty: none.
Result<Schedule> schedule(const codegen::Kernel& kernel, std::span<const std::int64_t> starts = {});

/// Of a scatter: whether no two points have the same target.
bool has_points_apart(const codegen::Kernel& kernel);

/// What the starts of all runs are multiples of, by buffer, of starts run by run.
std::vector<std::int64_t> starts_of_all_runs(std::span<const std::int64_t> starts, std::size_t buffers);

/// Schedule::runs of a kernel that runs so often: as many as parameters have room for, and in each launch about as many.
unsigned runs_at_once(const codegen::Kernel& kernel, const Schedule& schedule, std::size_t runs);

/// Buffers in memory: those before the rows that a team keeps in registers.
std::size_t memory_buffers(const codegen::Kernel& kernel);

/// True where a team may keep rows, or columns, of the kernel: it passes over one inner loop, of a size that is known and not large.
bool may_keep_rows(const codegen::Kernel& kernel);

/// True where what a kernel with inner loops reads is contiguous along the last outer loop, and not along the last inner one.
bool runs_along_columns(const codegen::Kernel& kernel);

/// Whether a place is contiguous along the loop, and a multiple of so many elements where the loop's variable is.
bool is_aligned(const codegen::Dim& place, ir::SymbolId loop, std::int64_t elements);

}  // namespace tenon::cuda
