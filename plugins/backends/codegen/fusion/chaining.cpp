// Which products share a block of rows: product, kernel over its rows, product.
#include <algorithm>

#include "fusion/chain.h"
#include "fusion/planner.h"

namespace tenon::codegen {

bool gives_once(const Draft& draft, ValueId value, const std::vector<std::size_t>& reads) {
  return std::ranges::all_of(draft.members(), [&](const Draft::Member& m) { return reads[m.value.value] == (m.value == value ? 1u : 0u); });
}

/// True when the product is needed by the left operand of one other product alone, of as many elements, behind a reduction: then the two
/// may share blocks of rows, and what comes between is left to the kernel there.
bool Planner::leads_to_product(NodeId id, const std::vector<std::vector<NodeId>>& users) const {
  constexpr std::size_t kMostValues = 64;
  const ValueId start = graph_.node(id).results[0];
  std::vector<ValueId> seen{start};
  std::optional<NodeId> found;
  bool reduces = false;
  for (std::size_t i = 0; i < seen.size() && seen.size() <= kMostValues; ++i) {
    if (std::any_of(graph_.outputs().begin(), graph_.outputs().end(), [&](const ir::Output& o) { return o.value == seen[i]; })) return false;
    for (NodeId user : users[seen[i].value]) {
      const ir::Node& node = graph_.node(user);
      if (product_[user.value]) {
        if ((found && *found != user) || node.operands[0] != seen[i]) return false;
        if (!(graph_.type(seen[i]).element_count() == graph_.type(start).element_count())) return false;
        found = user;
        continue;
      }
      if (!context_.bodies[user.value]) return false;
      reduces = reduces || context_.bodies[user.value]->reducer;
      for (ValueId r : node.results)
        if (std::find(seen.begin(), seen.end(), r) == seen.end()) seen.push_back(r);
    }
  }
  return found && reduces && seen.size() <= kMostValues;
}

namespace {

ChainSize size_of_chain(const IndexAlgebra& algebra, const ChainStep& chain) {
  return {.depth = estimated_points(algebra, chain.first.summed),
          .between = algebra.estimate(chain.first.column_count()),
          .columns = algebra.estimate(chain.second.product.column_count()),
          .is_softmax = chain.softmax.has_value()};
}

}  // namespace

/// The chain that ends in the step, if any, and its first two steps.
std::optional<Planner::Chained> Planner::chain_at(std::size_t last, const std::vector<std::size_t>& reads) {
  const PendingStep& second = steps_[last];
  if (!options_.fuse || !second.product || !second.product->a.matrix) return {};
  const ValueId left = second.product->a.matrix->value;
  const std::size_t between = left.value < step_of_.size() ? step_of_[left.value] : kNoStep;
  if (between == kNoStep || !steps_[between].draft || steps_[between].product || !gives_once(*steps_[between].draft, left, reads)) return {};
  std::vector<bool> only(graph_.value_capacity(), false);
  only[left.value] = true;
  Draft middle = *steps_[between].draft;
  for (ValueId v : steps_[between].draft->buffers()) {
    const std::size_t first = middle.member(v) ? kNoStep : step_of_[v.value];
    if (first == kNoStep || !steps_[first].product || steps_[first].product->result != v || !gives_once(*steps_[first].draft, v, reads)) continue;
    std::vector<bool> product_only(graph_.value_capacity(), false);
    product_only[v.value] = true;
    Draft top = *steps_[first].draft;
    const KernelStep store = finish(top, product_only);
    if (!only_stores(store.kernel, store.buffers, v)) continue;
    auto chain = as_chain(context_, *steps_[first].product, finish(middle, only), *second.product);
    if (!chain) continue;
    const bool worth = machine_.worth_chaining(size_of_chain(algebra_, *chain));
    log(fmt::format("{} and {} {} blocks of rows: %{} of {:.0f} columns between them", name_of_node(chain->first.node), name_of_node(chain->second.product.node),
                    worth ? "share" : "do not share", graph_.value(left).name, algebra_.estimate(chain->first.column_count())));
    if (worth) return Chained{std::move(*chain), first, between};
  }
  return {};
}

/// By the step that ends a chain. No step is part of two.
std::vector<std::optional<Planner::Chained>> Planner::find_chains(const std::vector<std::size_t>& reads) {
  std::vector<std::optional<Chained>> chains(steps_.size());
  std::vector<bool> taken(steps_.size(), false);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    auto found = chain_at(s, reads);
    if (!found || taken[s] || taken[found->first] || taken[found->between]) continue;
    taken[s] = taken[found->first] = taken[found->between] = true;
    chains[s] = std::move(found);
  }
  return chains;
}

}  // namespace tenon::codegen
