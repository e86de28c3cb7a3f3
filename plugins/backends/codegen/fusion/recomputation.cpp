// What several kernels would compute, each with all that it needs: from the second kernel on such a value is read from memory.
#include <algorithm>

#include "core/ops/view.h"
#include "fusion/planner.h"

namespace tenon::codegen {
namespace {

/// What an element costs that its kernel computes in passing: without what the kernel needs beside it.
class Price {
 public:
  Price(const Draft& draft, const FusionContext& context) : draft_(draft), context_(context), kept_(needed({})) {}

  double of(NodeId node) const {
    std::vector<OpId> cut;
    for (const Draft::Expansion& e : draft_.expansions())
      if (e.node == node) cut.insert(cut.end(), e.results.begin(), e.results.end());
    const auto without = needed(cut);
    const double elements = context_.algebra.estimate(context_.graph.type(context_.graph.node(node).results[0]).element_count());
    double cost = 0;
    for (OpId id = 0; id < kept_.size(); ++id)
      if (kept_[id] && !without[id]) cost += cost_of_operation(draft_.operations()[id], elements);
    return cost * std::min(1.0, points() / std::max(1.0, elements));
  }

 private:
  /// The operations that the results of the kernel need when those of `cut` are there.
  std::vector<bool> needed(const std::vector<OpId>& cut) const {
    std::vector<bool> found(draft_.operations().size(), false), stops(found.size(), false);
    for (OpId id : cut) stops[id] = true;
    std::vector<OpId> open = draft_.results();
    while (!open.empty()) {
      const OpId id = open.back();
      open.pop_back();
      if (found[id] || stops[id]) continue;
      found[id] = true;
      for (OpId need : needs_of(draft_.operations()[id])) open.push_back(need);
    }
    return found;
  }

  double cost_of_operation(const Operation& op, double elements) const {
    if (op.kind == OperationKind::load) {
      const ValueId value = draft_.buffers()[op.payload];
      const bool passing = context_.graph.value(value).kind == ir::ValueKind::result && !context_.is_constant(value);
      return context_.machine.cost_of_load(context_.algebra.estimate(context_.graph.type(value).element_count()), elements, passing);
    }
    return op.kind == OperationKind::primitive && op.dtype != DType::i64 ? work_of(op) : 0;
  }

  double points() const { return estimated_points(context_.algebra, draft_.outer()) * estimated_points(context_.algebra, draft_.inner()); }

  const Draft& draft_;
  const FusionContext& context_;
  std::vector<bool> kept_;
};

/// The loops of the draft that the index walks over, each of them once: the outer ones, or all. Nothing where it misses elements of
/// `extents`, or gives one several times.
std::optional<StageKind> walks(const Draft& draft, std::span<const Dim> index, std::span<const Dim> extents) {
  std::vector<Loop> loops = draft.outer();
  loops.insert(loops.end(), draft.inner().begin(), draft.inner().end());
  std::vector<bool> taken(loops.size(), false);
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (extents[d] == Dim(1)) continue;
    const auto own = std::ranges::find_if(loops, [&](const Loop& l) { return index[d] == Dim::symbol(l.variable) && l.extent == extents[d]; });
    if (own == loops.end() || taken[static_cast<std::size_t>(own - loops.begin())]) return {};
    taken[static_cast<std::size_t>(own - loops.begin())] = true;
  }
  const auto outer = static_cast<std::ptrdiff_t>(draft.outer().size()), walked = std::ranges::count(taken, true);
  if (std::count(taken.begin(), taken.begin() + outer, true) != outer) return {};
  if (walked == outer) return StageKind::row;
  return walked == static_cast<std::ptrdiff_t>(loops.size()) ? std::optional(StageKind::map) : std::nullopt;
}

}  // namespace

void Planner::note_computed(std::size_t step, std::size_t first) {
  const auto& expansions = steps_[step].draft->expansions();
  for (std::size_t i = first; i < expansions.size(); ++i) {
    auto& steps = computed_by_[expansions[i].node.value];
    if (steps.size() < machine_.thresholds.computing_kernels && std::ranges::find(steps, step) == steps.end()) steps.push_back(step);
  }
}

/// Where a kernel that computes the node in passing has each of its elements once, so that it could store it: from then on that is alive.
std::optional<Planner::Passing> Planner::passing(NodeId id) const {
  for (std::size_t step : computed_by_[id.value]) {
    if (steps_[step].closed) continue;
    const Draft& draft = *steps_[step].draft;
    for (const Draft::Expansion& e : draft.expansions()) {
      if (e.node != id || e.mask != kNoOp) continue;
      const auto kind = walks(draft, e.index, context_.bodies[id.value]->extents);
      if (kind != StageKind::row && (kind != StageKind::map || !rows_fit(machine_, algebra_, draft))) continue;
      if (may_live_from(step, id)) return Passing{step, e.index, *kind};
    }
  }
  return {};
}

/// The dearest expression, with all that it pulls in, that expansions of the draft from `first` on compute once more. Nothing where storing
/// it would cost a kernel of its own and this is only the second one that computes it.
std::optional<NodeId> Planner::computed_again(const Draft& draft, std::size_t first, std::size_t step) const {
  std::optional<Price> price;
  const auto& expansions = draft.expansions();
  std::optional<NodeId> last;
  for (std::size_t i = expansions.size(); i-- > first;) {  // what others are made of comes first
    const NodeId id = expansions[i].node;
    const auto& steps = computed_by_[id.value];
    if (last == id || steps.empty() || std::ranges::find(steps, step) != steps.end() || is_view(*context_.bodies[id.value])) continue;
    last = id;
    if (!price) price.emplace(draft, context_);
    if (machine_.worth_storing(price->of(id), 2) && (steps.size() == machine_.thresholds.computing_kernels || passing(id))) return id;
  }
  return {};
}

/// Puts a value into memory that kernels have computed in passing: one of them stores it, or one of its own.
void Planner::store_computed(NodeId id) {
  const auto found = passing(id);
  for (ValueId r : graph_.node(id).results) context_.in_memory[r.value] = true, stored_.push_back(r);
  find_lives_with(id);
  if (!found) {
    log(fmt::format("store {}: {} kernels computed it in passing", name_of_node(id), machine_.thresholds.computing_kernels));
    return open_kernel(id, kernel_of(id));
  }
  log(fmt::format("store {}: kernel {} computes it, and others would again", name_of_node(id), found->step));
  steps_[found->step].draft->add_map(id, found->index, found->kind);
  for (ValueId r : graph_.node(id).results) write(r, found->step);
}

}  // namespace tenon::codegen
