// Which thread does what of a kernel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "loops/kernel.h"

namespace tenon::cuda {

/// Threads of a block, and of a warp.
inline constexpr unsigned kBlock = 256, kWarp = 32;
/// What a thread reads or writes at once, in bytes.
inline constexpr unsigned kVectorBytes = 16;

struct Schedule {
  /// points: a thread has a vector of points of the outer loops. rows: a team of threads has one point of them, and shares the inner loops.
  enum class Kind { points, rows };
  Kind kind = Kind::points;
  unsigned lanes = 1;                      // points of the vector, along the last loop
  unsigned team = 1;                       // threads of a team: 1, a warp, or a block
  codegen::Dim units;                      // vectors of points, none of which spans two rows of the last loop; or rows
  std::vector<unsigned> alignments;        // by buffer, in bytes: its first element lies at a multiple
  std::vector<ir::SymbolId> symbols;       // of the graph, in the order of the parameters that give them

  codegen::Dim blocks() const { return floor_div(units * codegen::Dim(team) + codegen::Dim(kBlock - 1), codegen::Dim(kBlock)); }
  /// The loop that the lanes of a vector run along.
  const codegen::Loop* lane_loop(const codegen::Kernel& kernel) const;
};

/// Chooses; or says what of the kernel has no code for this target. `starts`: by buffer, elements of its value, which starts at a multiple of
/// kVectorBytes, before its first one; empty: none.
Result<Schedule> schedule(const codegen::Kernel& kernel, std::span<const std::int64_t> starts = {});

/// Whether a place is contiguous along the loop, and a multiple of so many elements where the loop's variable is.
bool is_aligned(const codegen::Dim& place, ir::SymbolId loop, std::int64_t elements);

}  // namespace tenon::cuda
