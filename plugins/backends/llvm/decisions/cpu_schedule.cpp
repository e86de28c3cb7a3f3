#include "decisions/cpu_schedule.h"

#include <fmt/format.h>

namespace tenon::llvm_backend {

using namespace codegen;

std::string CpuSchedule::title(const Kernel& kernel) const {
  if (kernel.scatter) return !in_runs ? "scatter kernel" : lanes_inside ? "scatter kernel with runs inside" : "scatter kernel in runs";
  const char* kind = lanes_inside ? "kernel with lanes inside" : tiled ? "tiled kernel" : "kernel";
  return one_block ? fmt::format("one block of {}, {}", one_block, kind) : kind;
}

std::size_t CpuSchedule::loops_apart(const Kernel& kernel) const {
  const std::size_t shared = tiled ? 2 : lanes_inside ? 0 : 1;
  return kernel.outer.size() > shared ? kernel.outer.size() - shared : 0;
}

const CpuSchedule& schedule_of(const Kernel& kernel) {
  static const CpuSchedule simplest;
  return kernel.schedule ? static_cast<const CpuSchedule&>(*kernel.schedule) : simplest;
}

void run_in_one_block(Kernel& kernel, std::int64_t size) {
  auto schedule = std::make_shared<CpuSchedule>();
  schedule->one_block = size;
  kernel.schedule = std::move(schedule);
}

std::int64_t block_size(const Kernel& kernel) { return schedule_of(kernel).tiled ? 16 : kernel.inner.empty() ? 4096 : kInnerBlock; }

Dim unit_count(const Kernel& kernel) {
  const CpuSchedule& schedule = schedule_of(kernel);
  Dim count(1);
  for (std::size_t i = 0; i < kernel.outer.size(); ++i) {
    const bool blocked = i + 1 == kernel.outer.size() && schedule.has_lanes_outside(kernel);
    if (blocked && schedule.one_block) continue;
    const bool tile_row = schedule.tiled && i + 2 == kernel.outer.size();
    const Dim block(blocked ? block_size(kernel) : tile_row ? kTileRows : 1);
    count = count * floor_div(kernel.outer[i].extent + block - Dim(1), block);
  }
  if (kernel.scatter)  // without inner points there is nothing to check either
    for (const Loop& l : kernel.inner) count = count * min(Dim(1), l.extent);
  return count;
}

Dim points_per_unit(const Kernel& kernel) {
  const CpuSchedule& schedule = schedule_of(kernel);
  Dim points(schedule.has_lanes_outside(kernel) ? block_size(kernel) : 1);
  if (points == Dim(block_size(kernel)) && !kernel.outer.empty()) points = min(points, kernel.outer.back().extent);
  if (schedule.tiled) points = points * min(Dim(kTileRows), kernel.outer[kernel.outer.size() - 2].extent);
  for (const Loop& l : kernel.inner) {
    bool fixed = true;
    l.extent.for_each_symbol([&](SymbolId s) { fixed &= is_graph_symbol(s); });
    if (fixed) points = points * l.extent;
  }
  return points;
}

}  // namespace tenon::llvm_backend
