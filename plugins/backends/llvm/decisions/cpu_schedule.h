// How a CPU runs the loops of a kernel: over the lanes of vectors, in units that threads take.
#pragma once

#include <cstdint>

#include "loops/kernel.h"

namespace tenon::llvm_backend {

struct CpuSchedule final : codegen::Schedule {
  bool lanes_inside = false;   // lanes run over the last inner loop; else over the last outer one
  bool in_runs = false;        // of a scatter: targets are neighbours along the lanes; else it is one lane wide
  bool tiled = false;          // some memory is contiguous along the loop before the lanes: units are tiles of both loops
  std::int64_t one_block = 0;  // the last outer loop is never longer: a unit is all of it. 0: units are blocks of it

  bool has_lanes(const codegen::Kernel& kernel) const { return kernel.scatter ? in_runs : lanes_inside || !kernel.outer.empty(); }
  /// True where lanes run over the last outer loop.
  bool has_lanes_outside(const codegen::Kernel& kernel) const { return has_lanes(kernel) && !lanes_inside; }
  SymbolId lane_loop(const codegen::Kernel& kernel) const { return lanes_inside ? kernel.inner.back().variable : kernel.outer.back().variable; }

  std::string title(const codegen::Kernel& kernel) const override;
  std::size_t loops_apart(const codegen::Kernel& kernel) const override;
};

/// The schedule of a kernel that this machine has planned; the simplest one where it has made none.
const CpuSchedule& schedule_of(const codegen::Kernel& kernel);
/// Gives the kernel a schedule of which all is as it is simplest but for the size of its one block.
void run_in_one_block(codegen::Kernel& kernel, std::int64_t size);

/// So many where loops run inside of the lanes.
inline constexpr std::int64_t kInnerBlock = 64;
/// Iterations of the last outer loop that are handed to a thread together, when lanes run over it.
std::int64_t block_size(const codegen::Kernel& kernel);
/// Iterations of the loop before it that make a tile with them.
inline constexpr std::int64_t kTileRows = 64;
/// The range of units that the generated function is called for: points of the outer loops, or blocks of them.
codegen::Dim unit_count(const codegen::Kernel& kernel);
/// Points of the innermost loops in one unit.
codegen::Dim points_per_unit(const codegen::Kernel& kernel);

}  // namespace tenon::llvm_backend
