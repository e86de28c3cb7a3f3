#include "fusion/lifetimes.h"

#include <algorithm>
#include <numeric>

namespace tenon::codegen {

double estimated_bytes(const ir::Type& type, const IndexAlgebra& algebra) { return algebra.estimate(type.element_count()) * static_cast<double>(size_of(type.dtype)); }

double most_alive_node_by_node(const ir::Graph& graph, const IndexAlgebra& algebra) {
  const auto nodes = graph.nodes();
  std::vector<std::size_t> last(graph.value_capacity(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (ValueId operand : graph.node(nodes[i]).operands) last[operand.value] = i;
    for (ValueId result : graph.node(nodes[i]).results) last[result.value] = i;
  }
  for (const ir::Output& output : graph.outputs()) last[output.value.value] = nodes.size();
  std::vector<double> freed(nodes.size() + 1, 0);
  double alive = 0, most = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (is_constant_node(graph.node(nodes[i]))) continue;
    for (ValueId result : graph.node(nodes[i]).results) {
      const double bytes = estimated_bytes(graph.type(result), algebra);
      alive += bytes;
      freed[last[result.value]] += bytes;
    }
    most = std::max(most, alive);
    alive -= freed[i];
  }
  return most;
}

std::vector<double> Lives::alive_at_steps(std::size_t steps) const {
  std::vector<double> change(steps + 2, 0);
  for (std::size_t v = 0; v < bytes.size(); ++v)
    if (first[v] != kNever) change[first[v]] += bytes[v], change[last[v] + 1] -= bytes[v];
  std::partial_sum(change.begin(), change.end(), change.begin());
  change.resize(steps);
  return change;
}

Lives lives_of(const Plan& plan, const ir::Graph& graph, const IndexAlgebra& algebra) {
  const std::size_t own = graph.value_capacity(), values = own + plan.temporaries.size(), steps = plan.steps.size();
  Lives lives{std::vector(values, Lives::kNever), std::vector<std::size_t>(values, 0), std::vector<double>(values, 0)};
  for (std::size_t s = 0; s < steps; ++s)
    for (const bool written : {true, false})
      for (std::size_t v : values_of(plan.steps[s], graph, written)) {
        if (written) lives.first[v] = std::min(lives.first[v], s);
        lives.last[v] = s;
      }
  for (const ir::Output& output : graph.outputs()) lives.last[output.value.value] = steps;
  for (std::size_t v = 0; v < values; ++v) {
    if (lives.first[v] == Lives::kNever) continue;
    const Temporary* temporary = v < own ? nullptr : &plan.temporaries[v - own];
    lives.bytes[v] = temporary ? algebra.estimate(temporary->elements) * static_cast<double>(size_of(temporary->dtype)) : estimated_bytes(graph.type(ValueId(static_cast<std::uint32_t>(v))), algebra);
  }
  return lives;
}

Lifetimes::Lifetimes(const ir::Graph& graph, const IndexAlgebra& algebra, const FusionContext& context)
    : graph_(graph), algebra_(algebra), context_(context), place_(graph.node_capacity(), 0), last_use_(graph.value_capacity(), 0) {
  std::size_t place = 0;
  for (NodeId id : graph.nodes()) {
    place_[id.value] = ++place;
    for (ValueId operand : graph.node(id).operands) last_use_[operand.value] = place;
  }
  for (const ir::Output& output : graph.outputs()) last_use_[output.value.value] = place + 1;
}

bool Lifetimes::is_passing(ValueId value) const { return graph_.value(value).kind == ir::ValueKind::result && !context_.is_constant(value); }

std::vector<ValueId> Lifetimes::needs_of(ValueId value) const {
  std::vector<ValueId> needs, seen{value};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const ValueId v = seen[i];
    if (context_.in_memory[v.value]) {
      needs.push_back(v);
      continue;
    }
    for (ValueId operand : graph_.node(graph_.value(v).node).operands)
      if (is_passing(operand) && std::ranges::find(seen, operand) == seen.end()) seen.push_back(operand);
  }
  return needs;
}

double Lifetimes::kept_for(ValueId operand) const {
  if (!is_passing(operand) || context_.in_memory[operand.value]) return 0;
  const std::size_t place = place_[graph_.value(operand).node.value];
  if (last_written_ <= place) return 0;
  const double own = bytes_of(operand);
  double bytes = 0;
  for (ValueId v : needs_of(operand))
    if (last_use_[v.value] <= place) bytes += std::min(own, bytes_of(v));
  return bytes;
}

void Lifetimes::pass(NodeId id) {
  const bool written = std::ranges::any_of(graph_.node(id).results, [&](ValueId r) { return context_.in_memory[r.value]; });
  if (written) last_written_ = place_[id.value];
}

}  // namespace tenon::codegen
