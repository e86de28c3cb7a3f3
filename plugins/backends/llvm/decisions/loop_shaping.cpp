#include "decisions/loop_shaping.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "decisions/paired_points.h"
#include "decisions/window_tiles.h"
#include "loops/merging.h"

namespace tenon::llvm_backend {

using namespace codegen;
namespace {

/// Moves a loop inside of the lanes (the channels of an interpolation), where much of the work is the same for all of its iterations and is then
/// done once for all of them: places, weights and masks of the others.
bool share_work(Kernel& kernel, const IndexAlgebra& algebra, unsigned lanes) {
  constexpr double kFewestShared = 12, kFewestIterations = 2, kMostIterations = 256;
  if (!kernel.inner.empty() || kernel.outer.size() < 2 || kernel.stages.size() != 1 || kernel.stages[0].kind != StageKind::row) return false;
  const SymbolId lane = kernel.outer.back().variable;
  if (algebra.estimate(kernel.outer.back().extent) < lanes) return false;
  const auto depending = [&](SymbolId variable) { return dependents(kernel.operations, [&](const Operation& op) { return mentions(op.offset, variable); }); };
  const std::vector<bool> varying = depending(lane);
  std::optional<std::size_t> best;
  double most = 0;
  for (std::size_t i = 0; i + 1 < kernel.outer.size(); ++i) {
    const Loop& loop = kernel.outer[i];
    const double iterations = algebra.estimate(loop.extent);
    const bool stores = std::ranges::all_of(kernel.stages[0].stores, [&](const Store& s) { return mentions(s.offset, loop.variable); });
    if (iterations < kFewestIterations || iterations > kMostIterations || !stores) continue;
    const std::vector<bool> own = depending(loop.variable);
    double shared = 0, repeated = 0;
    for (std::size_t id = 0; id < own.size(); ++id) (own[id] ? repeated : shared) += varying[id] ? work_of(kernel.operations[id]) : 0;
    const double gain = (shared - repeated / 4) * (1 - 1 / iterations);
    if (gain >= kFewestShared && gain > most) best = i, most = gain;
  }
  if (!best) return false;
  kernel.inner.push_back(kernel.outer[*best]);
  kernel.outer.erase(kernel.outer.begin() + static_cast<std::ptrdiff_t>(*best));
  kernel.stages[0].kind = StageKind::map;
  return true;
}

/// True when every load is contiguous along loop `a`, and some is not along `a` and the short loop `b` as one (few channels of which each is
/// a picture of its own): lanes over `a` then read runs, where they would gather over both.
bool reads_runs_without(const Kernel& kernel, const Loop& a, const Loop& b) {
  bool runs = true, gathers = false;
  for (const Operation& op : kernel.operations) {
    if (op.kind != OperationKind::load) continue;
    runs = runs && is_contiguous_or_fixed(op.offset, a.variable);
    gathers = gathers || !steps_as_one(op.offset, a, b);
  }
  return runs && gathers;
}

/// Joins a short last loop of known length with the loop before it, so that lanes are filled, or has them change places.
void merge_short_last(Kernel& kernel, std::vector<Loop>& loops, IndexAlgebra& algebra, unsigned lanes) {
  while (loops.size() >= 2 && loops.back().extent.is_constant() && loops.back().extent.constant() > 0 && loops.back().extent.constant() < static_cast<std::int64_t>(lanes)) {
    const Loop a = loops[loops.size() - 2], b = loops.back();
    if (depends_on(kernel.inner, a.variable) || depends_on(kernel.inner, b.variable)) return;
    const bool long_enough = !a.extent.is_constant() || a.extent.constant() >= static_cast<std::int64_t>(lanes);
    if (kernel.inner.empty() && long_enough && reads_runs_without(kernel, a, b)) return std::swap(loops[loops.size() - 2], loops.back());
    const Dim extent = a.extent * b.extent;
    const SymbolId merged = algebra.new_loop(extent);
    const Dim flat = Dim::symbol(merged);
    const Dim outer = algebra.floor_div(flat, b.extent), inner = algebra.mod(flat, b.extent);
    for_each_index(kernel, [&](Dim& d) { d = algebra.substitute(algebra.substitute(d, a.variable, outer), b.variable, inner); });
    loops.pop_back();
    loops.back() = {merged, extent};
  }
}

/// True for the rows of a window, which gather when they are joined to fill vectors, and for a row of few elements.
bool leaves_lanes_idle(const std::vector<Loop>& inner, const IndexAlgebra& algebra, unsigned lanes) {
  const double row = algebra.estimate(inner.back().extent);
  return inner.size() > 1 ? row < lanes : 2 * row <= lanes;
}

bool lanes_go_inside(Kernel& kernel, const IndexAlgebra& algebra, unsigned lanes) {
  if (kernel.inner.empty()) return false;
  if (kernel.outer.empty()) return true;
  if (depends_on(kernel.inner, kernel.outer.back().variable)) return true;  // lanes would run inner loops of different lengths
  if (estimated_points(algebra, kernel.outer) >= lanes && leaves_lanes_idle(kernel.inner, algebra, lanes)) return false;
  const int inside = awkward_accesses(kernel, kernel.inner.back().variable);
  const int outside = awkward_accesses(kernel, kernel.outer.back().variable);
  if (inside != outside) return inside < outside;
  return algebra.estimate(kernel.inner.back().extent) >= algebra.estimate(kernel.outer.back().extent) ||
         algebra.estimate(kernel.outer.back().extent) < lanes;
}

/// True when some access is strided along the lanes and contiguous along the loop before them, as in a transposition.
bool wants_tiles(const Kernel& kernel) {
  if (!kernel.inner.empty() || kernel.outer.size() < 2) return false;
  const SymbolId lane = kernel.outer.back().variable, row = kernel.outer[kernel.outer.size() - 2].variable;
  for (const Operation& op : kernel.operations) {
    if (op.kind != OperationKind::load) continue;
    const auto along = split_affine(op.offset, lane), before = split_affine(op.offset, row);
    if (along && before && !(along->coefficient == Dim(0)) && !(along->coefficient == Dim(1)) && before->coefficient == Dim(1)) return true;
  }
  return false;
}

/// True where the last loop of a scatter steps through neighbours, long enough for lanes: no two of its points have one target.
bool scatters_in_runs(const Kernel& kernel, const IndexAlgebra& algebra, unsigned lanes) {
  if (kernel.outer.empty() || 2 * algebra.estimate(kernel.outer.back().extent) < lanes) return false;
  const SymbolId last = kernel.outer.back().variable;
  const Dim& target = kernel.stages.back().stores[0].offset;
  const auto along = split_affine(target, last);
  if (!along || !(along->coefficient == Dim(1))) return false;
  const auto varying = dependents(kernel.operations, [&](const Operation& op) { return mentions(op.offset, last); });
  bool fixed = true;
  target.for_each_symbol([&](SymbolId s) { fixed = fixed && !(is_value(s) && varying[s.value - kFirstValue]); });
  return fixed;
}

/// Of a scatter over whose neighbours threads would walk while the loops inside stride through memory: neighbours go inside, a block at a time.
void walk_in_blocks(Kernel& kernel, IndexAlgebra& algebra) {
  constexpr std::int64_t kBlock = 128;
  if (kernel.outer.empty() || kernel.inner.empty()) return;
  const Loop columns = kernel.outer.back();
  const bool divides = columns.extent.is_constant() && columns.extent.constant() % kBlock == 0 && columns.extent.constant() > kBlock;
  if (!divides || awkward_accesses(kernel, columns.variable) >= awkward_accesses(kernel, kernel.inner.back().variable)) return;
  const Dim blocks = columns.extent.constant() / kBlock;
  const SymbolId block = algebra.new_loop(blocks), column = algebra.new_loop(Dim(kBlock));
  const Dim place = Dim::symbol(block) * Dim(kBlock) + Dim::symbol(column);
  for_each_index(kernel, [&](Dim& d) { d = algebra.substitute(d, columns.variable, place); });
  kernel.outer.back() = {block, blocks};
  kernel.inner.push_back({column, Dim(kBlock)});
}

/// Of a scatter, the loops that tell targets apart become the outer ones, which threads share, as many from the first on as give them enough to do;
/// the others run inside of them in order.
void order_scatter(Kernel& kernel, IndexAlgebra& algebra, unsigned lanes, CpuSchedule& schedule) {
  constexpr double kEnoughUnits = 64;
  const std::int64_t columns = 2 * kInnerBlock;  // so many that threads may share the loop of the lanes
  if (kernel.outer.empty()) return;
  schedule.in_runs = scatters_in_runs(kernel, algebra, lanes);
  const SymbolId last = kernel.outer.back().variable;
  double units = 1;
  const auto goes_outside = [&](const Loop& l) {
    if (std::ranges::find(kernel.apart, l.variable) == kernel.apart.end() || units >= kEnoughUnits) return false;
    const double iterations = algebra.estimate(l.extent);
    if (schedule.in_runs && l.variable == last && iterations < static_cast<double>(columns)) return false;
    units *= iterations;
    return true;
  };
  std::vector<Loop> outer;
  for (const Loop& l : kernel.outer) (goes_outside(l) ? outer : kernel.inner).push_back(l);
  kernel.outer = std::move(outer);
  if (!schedule.in_runs) walk_in_blocks(kernel, algebra);
  merge_contiguous(kernel, kernel.inner, algebra);
  merge_contiguous(kernel, kernel.outer, algebra);
  schedule.lanes_inside = schedule.in_runs && !kernel.inner.empty() && kernel.inner.back().variable == last;
  if (!kernel.inner.empty()) kernel.stages.back().kind = StageKind::map;
}

}  // namespace

void shape_loops(Kernel& kernel, IndexAlgebra& algebra, unsigned lanes) {
  auto made = std::make_shared<CpuSchedule>();
  CpuSchedule& schedule = *made;
  kernel.schedule = std::move(made);
  if (kernel.scatter) return order_scatter(kernel, algebra, lanes, schedule);
  pair_points(kernel, algebra);
  order_by_store(kernel, kernel.outer, algebra);
  const bool shares = share_work(kernel, algebra, lanes);
  merge_contiguous(kernel, kernel.inner, algebra);
  merge_contiguous(kernel, kernel.outer, algebra);
  schedule.lanes_inside = !shares && lanes_go_inside(kernel, algebra, lanes);
  if (schedule.lanes_inside) merge_short_last(kernel, kernel.inner, algebra, lanes);
  else if (!kernel.outer.empty()) merge_short_last(kernel, kernel.outer, algebra, lanes);
  schedule.tiled = !schedule.lanes_inside && wants_tiles(kernel);
  if (!schedule.lanes_inside && !schedule.tiled) tile_windows(kernel, algebra, lanes);
}

}  // namespace tenon::llvm_backend
