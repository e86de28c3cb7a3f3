#include "fusion/parallel_reduction.h"

#include <algorithm>

#include "fusion/pruning.h"
#include "loops/merging.h"

namespace tenon::codegen {

bool only_independent_reductions(const Kernel& kernel) {
  for (const Stage& stage : kernel.stages)
    if (stage.kind == StageKind::map) return false;
  const auto depends = reduction_dependents(kernel.operations);
  for (const Reduction& r : kernel.reductions)
    for (OpId e : r.elements)
      if (depends[e]) return false;
  return !kernel.reductions.empty();
}

namespace {

std::vector<KernelStep> alone(KernelStep step) {
  std::vector<KernelStep> steps;
  steps.push_back(std::move(step));
  return steps;
}

/// A program that hands its parameters on.
ops::ScalarProgram identity(const std::vector<DType>& types) {
  ops::Scalars s;
  for (std::size_t i = 0; i < types.size(); ++i) s.result(s.parameter(i, types[i]));
  return s.take();
}

std::size_t longest(const Kernel& kernel, const IndexAlgebra& algebra) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < kernel.inner.size(); ++i)
    if (algebra.estimate(kernel.inner[i].extent) > algebra.estimate(kernel.inner[best].extent)) best = i;
  return best;
}

double points_of(const Kernel& kernel, const IndexAlgebra& algebra) {
  return estimated_points(algebra, kernel.outer) * estimated_points(algebra, kernel.inner);
}

/// The place of a point in a row-major tensor over the loops.
Dim place_in(const std::vector<Loop>& loops) {
  Dim place(0);
  for (const Loop& l : loops) place = place * l.extent + Dim::symbol(l.variable);
  return place;
}

/// A reduction in two steps: partial results over some of its inner loops, and their combination over the others with what follows.
class TwoSteps {
 public:
  TwoSteps(KernelStep step, IndexAlgebra& algebra, Plan& plan, const ir::Graph& graph)
      : algebra_(algebra), plan_(plan), graph_(graph), parts_(step), whole_(std::move(step)), written_(parts_.kernel.outer), read_(written_) {
    whole_.kernel.inner.clear();
  }

  const Kernel& parts() const { return parts_.kernel; }

  /// Gives each iteration of an inner loop partial results of its own, next to each other.
  void keep_apart(std::size_t inner) {
    auto& loops = parts_.kernel.inner;
    const Loop apart = loops[inner], combined{algebra_.new_loop(apart.extent), apart.extent};
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(inner));
    parts_.kernel.outer.push_back(apart);
    whole_.kernel.inner.push_back(combined);
    written_.push_back(apart), read_.push_back(combined);
  }

  /// Cuts an inner loop into pieces. Partial results of a piece lie together.
  void cut(std::size_t inner, std::int64_t pieces) {
    Loop& loop = parts_.kernel.inner[inner];
    const Dim extent = loop.extent, chunk = algebra_.floor_div(extent + Dim(pieces - 1), Dim(pieces));
    const SymbolId within = algebra_.new_loop(chunk);
    const Dim start = Dim::symbol(add_part(pieces).variable) * chunk;
    for (Operation& op : parts_.kernel.operations)
      if (op.kind == OperationKind::load || op.kind == OperationKind::index)
        op.offset = algebra_.substitute(op.offset, loop.variable, start + Dim::symbol(within));
    const bool even = extent.is_constant() && extent.constant() % pieces == 0;
    loop = {within, even ? chunk : max(Dim(0), min(chunk, extent - start))};
  }

  /// Gives the loop over parts whose partial results lie together.
  Loop add_part(std::int64_t parts) {
    const Loop part{algebra_.new_loop(Dim(parts)), Dim(parts)}, combined{algebra_.new_loop(Dim(parts)), Dim(parts)};
    parts_.kernel.outer.push_back(part);
    whole_.kernel.inner.insert(whole_.kernel.inner.begin(), combined);
    written_.insert(written_.begin(), part), read_.insert(read_.begin(), combined);
    return part;
  }

  std::vector<KernelStep> take() {
    Stage reduce{StageKind::reduce, {}, {}}, store{StageKind::row, {}, {}};
    for (std::size_t r = 0; r < parts_.kernel.reductions.size(); ++r) {
      auto& reducer = parts_.kernel.reductions[r].reducer;
      reducer.finish = identity(reducer.accumulators);
      reduce.reductions.push_back(static_cast<std::uint32_t>(r));
      for (std::size_t a = 0; a < reducer.accumulators.size(); ++a) store.stores.push_back(hand_over(r, a, reducer.accumulators[a]));
    }
    parts_.kernel.stages = {reduce, store};
    return {pruned(std::move(parts_)), pruned(std::move(whole_))};
  }

 private:
  /// Lets the second step read an accumulator from memory where the first one stores it.
  Store hand_over(std::size_t reduction, std::size_t accumulator, DType type) {
    Dim results(1);
    for (const Loop& l : written_) results = results * l.extent;
    const ValueId temporary(graph_.value_capacity() + plan_.temporaries.size());
    plan_.temporaries.push_back({type, results});
    const Buffer buffer{type, results * Dim(static_cast<std::int64_t>(size_of(type))), true};
    Kernel &parts = parts_.kernel, &whole = whole_.kernel;
    parts.operations.push_back({.kind = OperationKind::reduced, .dtype = type, .payload = std::uint64_t{reduction} << 16 | accumulator});
    const Store store{static_cast<std::uint32_t>(parts.buffers.size()), place_in(written_), static_cast<OpId>(parts.operations.size() - 1)};
    parts.buffers.push_back(buffer);
    parts_.buffers.push_back(temporary);
    whole.operations.push_back({.kind = OperationKind::load, .dtype = type, .payload = whole.buffers.size(), .offset = place_in(read_)});
    whole.reductions[reduction].elements[accumulator] = static_cast<OpId>(whole.operations.size() - 1);
    whole.buffers.push_back(buffer);
    whole.buffers.back().written = false;
    whole_.buffers.push_back(temporary);
    return store;
  }

  IndexAlgebra& algebra_;
  Plan& plan_;
  const ir::Graph& graph_;
  KernelStep parts_, whole_;
  std::vector<Loop> written_, read_;  // where partial results lie: loops of the first step, and of the second
};

}  // namespace

std::vector<KernelStep> split_reduction(KernelStep step, IndexAlgebra& algebra, const Machine& machine, Plan& plan, const ir::Graph& graph) {
  if (step.kernel.scatter || step.kernel.inner.empty() || !only_independent_reductions(step.kernel)) return alone(std::move(step));
  merge_contiguous(step.kernel, step.kernel.inner, algebra);
  const auto contiguous = points_of(step.kernel, algebra) >= machine.thresholds.gathered_reduction ? contiguous_inner_loop(step.kernel) : std::nullopt;
  TwoSteps steps(step, algebra, plan, graph);
  if (contiguous) steps.keep_apart(*contiguous);
  const std::int64_t pieces = machine.parts(steps.parts(), algebra);
  if (pieces > 1) steps.cut(longest(steps.parts(), algebra), pieces);
  return contiguous || pieces > 1 ? steps.take() : alone(std::move(step));
}

PartialSums in_parts(KernelStep step, std::int64_t parts, IndexAlgebra& algebra, Plan& plan, const ir::Graph& graph) {
  TwoSteps steps(std::move(step), algebra, plan, graph);
  const Loop part = steps.add_part(parts);
  std::vector<KernelStep> both = steps.take();
  return {std::move(both[0]), std::move(both[1]), part};
}

std::vector<KernelStep> cut_reduction(KernelStep step, std::int64_t pieces, Plan& plan, const ir::Graph& graph) {
  if (pieces <= 1) return alone(std::move(step));
  TwoSteps steps(std::move(step), plan.algebra, plan, graph);
  steps.cut(longest(steps.parts(), plan.algebra), pieces);
  return steps.take();
}

}  // namespace tenon::codegen
