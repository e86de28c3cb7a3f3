#include "fusion/lifetimes.h"

#include <algorithm>
#include <iterator>

namespace tenon::codegen {

Lifetimes::Lifetimes(const ir::Graph& graph, const IndexAlgebra& algebra, const FusionContext& context)
    : graph_(graph), algebra_(algebra), context_(context), place_(graph.node_capacity(), 0), last_use_(graph.value_capacity(), 0), needs_(graph.node_capacity()) {
  std::size_t place = 0;
  for (NodeId id : graph.nodes()) {
    place_[id.value] = ++place;
    for (ValueId operand : graph.node(id).operands) last_use_[operand.value] = place;
  }
  for (const ir::Output& output : graph.outputs()) last_use_[output.value.value] = place + 1;
}

bool Lifetimes::is_passing(ValueId value) const { return graph_.value(value).kind == ir::ValueKind::result && !context_.is_constant(value); }

std::size_t Lifetimes::kept_for(ValueId operand) const {
  if (!is_passing(operand) || context_.in_memory[operand.value]) return 0;
  const NodeId node = graph_.value(operand).node;
  if (last_written_ <= place_[node.value]) return 0;
  const double own = elements_of(operand);
  return static_cast<std::size_t>(std::ranges::count_if(needs_[node.value], [&](std::uint32_t v) { return last_use_[v] <= place_[node.value] && 2 * elements_of(ValueId(v)) >= own; }));
}

void Lifetimes::pass(NodeId id) {
  const ir::Node& node = graph_.node(id);
  auto& needs = needs_[id.value];
  for (ValueId operand : node.operands) {
    if (!is_passing(operand)) continue;
    std::vector<std::uint32_t> merged, own{operand.value};
    const auto& other = context_.in_memory[operand.value] ? own : needs_[graph_.value(operand).node.value];
    std::ranges::set_union(needs, other, std::back_inserter(merged));
    needs = std::move(merged);
  }
  const bool written = std::ranges::any_of(node.results, [&](ValueId r) { return context_.in_memory[r.value]; });
  if (written) last_written_ = place_[id.value];
}

}  // namespace tenon::codegen
