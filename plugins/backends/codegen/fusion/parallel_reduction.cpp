#include "fusion/parallel_reduction.h"

#include "fusion/cost.h"

namespace tenon::codegen {
namespace {

bool worth_splitting(const Kernel& kernel, const IndexAlgebra& algebra) {
  double results = 1, elements = 1;
  for (const Loop& l : kernel.outer) results *= algebra.estimate(l.extent);
  for (const Loop& l : kernel.inner) elements *= algebra.estimate(l.extent);
  return !kernel.inner.empty() && results <= 8 && elements >= kParallelReduction;
}

bool only_independent_reductions(const Kernel& kernel) {
  for (const Stage& stage : kernel.stages)
    if (stage.kind == StageKind::map) return false;
  const auto depends = reduction_dependents(kernel);
  for (const Reduction& r : kernel.reductions)
    for (OpId e : r.elements)
      if (depends[e]) return false;
  return !kernel.reductions.empty();
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

/// The place of part `part` of the current outer point, in a temporary.
Dim partial_offset(const std::vector<Loop>& outer, const Dim& part) {
  Dim linear(0);
  for (const Loop& l : outer) linear = linear * l.extent + Dim::symbol(l.variable);
  return linear * Dim(kReductionParts) + part;
}

}  // namespace

std::vector<KernelStep> split_for_threads(KernelStep step, IndexAlgebra& algebra, Plan& plan, const ir::Graph& graph) {
  std::vector<KernelStep> steps;
  if (step.kernel.scatter || !worth_splitting(step.kernel, algebra) || !only_independent_reductions(step.kernel)) {
    steps.push_back(std::move(step));
    return steps;
  }
  KernelStep parts = step;
  KernelStep& whole = step;
  const std::size_t split = longest(parts.kernel, algebra);
  Loop& loop = parts.kernel.inner[split];
  const Dim extent = loop.extent, chunk = algebra.floor_div(extent + Dim(kReductionParts - 1), Dim(kReductionParts));
  const SymbolId part = algebra.new_loop(Dim(kReductionParts)), within = algebra.new_loop(chunk);
  const Dim start = Dim::symbol(part) * chunk;
  for (Operation& op : parts.kernel.operations)
    if (op.kind == OperationKind::load || op.kind == OperationKind::index)
      op.offset = algebra.substitute(op.offset, loop.variable, start + Dim::symbol(within));
  loop = {within, max(Dim(0), min(chunk, extent - start))};
  parts.kernel.outer.push_back({part, Dim(kReductionParts)});
  parts.kernel.stages.clear();
  whole.kernel.inner = {{algebra.new_loop(Dim(kReductionParts)), Dim(kReductionParts)}};
  Dim results(kReductionParts);
  for (const Loop& l : whole.kernel.outer) results = results * l.extent;

  Stage reduce{StageKind::reduce, {}, {}}, store{StageKind::row, {}, {}};
  for (std::size_t r = 0; r < parts.kernel.reductions.size(); ++r) {
    const auto& types = parts.kernel.reductions[r].reducer.accumulators;
    parts.kernel.reductions[r].reducer.finish = identity(types);
    reduce.reductions.push_back(static_cast<std::uint32_t>(r));
    for (std::size_t a = 0; a < types.size(); ++a) {
      const ValueId temporary(graph.value_capacity() + plan.temporaries.size());
      plan.temporaries.push_back({types[a], results});
      const Buffer buffer{types[a], results * Dim(static_cast<std::int64_t>(size_of(types[a]))), true};
      parts.kernel.operations.push_back({.kind = OperationKind::reduced, .dtype = types[a], .payload = std::uint64_t{r} << 16 | a});
      store.stores.push_back({static_cast<std::uint32_t>(parts.kernel.buffers.size()), partial_offset(whole.kernel.outer, Dim::symbol(part)),
                              static_cast<OpId>(parts.kernel.operations.size() - 1)});
      parts.kernel.buffers.push_back(buffer);
      parts.buffers.push_back(temporary);
      whole.kernel.operations.push_back({.kind = OperationKind::load, .dtype = types[a], .payload = whole.kernel.buffers.size(),
                                         .offset = partial_offset(whole.kernel.outer, Dim::symbol(whole.kernel.inner[0].variable))});
      whole.kernel.reductions[r].elements[a] = static_cast<OpId>(whole.kernel.operations.size() - 1);
      whole.kernel.buffers.push_back(buffer);
      whole.kernel.buffers.back().written = false;
      whole.buffers.push_back(temporary);
    }
  }
  parts.kernel.stages = {reduce, store};
  steps.push_back(std::move(parts));
  steps.push_back(std::move(whole));
  return steps;
}

}  // namespace tenon::codegen
