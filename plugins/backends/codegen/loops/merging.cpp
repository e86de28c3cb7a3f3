#include "loops/merging.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace tenon::codegen {

void for_each_index(Kernel& kernel, const std::function<void(Dim&)>& visit) {
  for (Operation& op : kernel.operations)
    if (op.kind == OperationKind::load || op.kind == OperationKind::index) visit(op.offset);
  for (Stage& stage : kernel.stages)
    for (Store& store : stage.stores) visit(store.offset);
}

bool steps_as_one(const Dim& index, const Loop& a, const Loop& b) {
  if (!mentions(index, a.variable) && !mentions(index, b.variable)) return true;
  const auto in_a = split_affine(index, a.variable), in_b = split_affine(index, b.variable);
  return in_a && in_b && in_a->coefficient == in_b->coefficient * b.extent;
}

bool depends_on(const std::vector<Loop>& loops, SymbolId variable) {
  for (const Loop& l : loops)
    if (mentions(l.extent, variable)) return true;
  return false;
}

void merge_contiguous(Kernel& kernel, std::vector<Loop>& loops, IndexAlgebra& algebra) {
  for (std::size_t i = loops.size(); i-- > 1;) {
    const Loop a = loops[i - 1], b = loops[i];
    bool fits = !depends_on(kernel.inner, a.variable) && !depends_on(kernel.inner, b.variable);
    for_each_index(kernel, [&](Dim& d) { fits = fits && steps_as_one(d, a, b); });
    if (!fits) continue;
    for_each_index(kernel, [&](Dim& d) { d = replace_symbol(d, a.variable, Dim(0)); });
    loops[i].extent = a.extent * b.extent;
    algebra.set_extent(b.variable, loops[i].extent);
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i) - 1);
  }
}

void order_by_store(Kernel& kernel, std::vector<Loop>& loops, const IndexAlgebra& algebra) {
  if (kernel.stages.empty() || kernel.stages.back().stores.empty()) return;
  std::vector<std::pair<double, Loop>> ordered;
  for (const Loop& l : loops) {
    const auto along = split_affine(kernel.stages.back().stores[0].offset, l.variable);
    if (!along) return;
    const bool uneven = depends_on(kernel.inner, l.variable);
    ordered.emplace_back(uneven ? std::numeric_limits<double>::infinity() : std::abs(algebra.estimated_step(along->coefficient)), l);
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; i < loops.size(); ++i) loops[i] = ordered[i].second;
}

int awkward_accesses(const Kernel& kernel, SymbolId variable) {
  int count = 0;
  auto look = [&](const Dim& index) {
    if (!is_contiguous_or_fixed(index, variable)) ++count;
  };
  for (const Operation& op : kernel.operations)
    if (op.kind == OperationKind::load) look(op.offset);
  for (const Stage& stage : kernel.stages)
    if (stage.kind == StageKind::map)
      for (const Store& store : stage.stores) look(store.offset);
  return count;
}

std::optional<std::size_t> contiguous_inner_loop(const Kernel& kernel) {
  if (kernel.inner.size() < 2 || awkward_accesses(kernel, kernel.inner.back().variable) == 0) return {};
  if (!kernel.outer.empty() && awkward_accesses(kernel, kernel.outer.back().variable) == 0) return {};
  for (std::size_t i = kernel.inner.size() - 1; i-- > 0;)
    if (awkward_accesses(kernel, kernel.inner[i].variable) == 0) return i;
  return {};
}

}  // namespace tenon::codegen
