#include "core/rewrite/shared_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/printer.h"
#include "core/rewrite/id_set.h"
#include "core/rewrite/rewriter.h"

namespace tenon::rewrite {
namespace {

using ir::NodeId;
using ir::ValueId;

/// Nodes with the same text compute the same.
std::string text_of(const ir::Graph& graph, const ir::Node& node) {
  std::string text(node.op);
  for (ValueId v : node.operands)
    text += graph.value(v).kind == ir::ValueKind::literal ? fmt::format(" {}", ir::print_literal(graph, graph.value(v).literal)) : fmt::format(" %{}", v.value);
  for (const auto& attribute : node.attributes) text += fmt::format(" {}={}", std::string_view(attribute.name), ir::print_attribute(graph, attribute.value));
  return text;
}

/// Values in whose place others are read. Each is known before whatever reads it is looked at, so that nothing is looked for in the whole graph.
class Replaced {
 public:
  void add(ValueId value, ValueId by) { by_[value] = by; }
  bool has(ValueId value) const { return by_.contains(value); }
  void apply(ValueId& value) const {
    if (const auto known = by_.find(value); known != by_.end()) value = known->second;
  }

 private:
  std::unordered_map<ValueId, ValueId> by_;
};

IdSet<NodeId> first_nodes(const ir::Graph& graph, std::size_t count) {
  IdSet<NodeId> first;
  for (NodeId id : graph.nodes().first(count)) first.insert(id);
  return first;
}

}  // namespace

bool is_computed_anew(const ir::Node& node) { return node.op == "div"; }

std::vector<SharedNode> share_nodes(ir::Graph& graph, std::size_t forward, std::span<std::optional<ValueId>> gradients) {
  std::unordered_map<std::string, NodeId> by_text;
  Replaced replaced;
  std::vector<SharedNode> shared;
  const IdSet<NodeId> own = first_nodes(graph, forward);
  const auto nodes = graph.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (std::ranges::any_of(graph.node(nodes[i]).operands, [&](ValueId v) { return replaced.has(v); }))
      for (ValueId& v : graph.mutable_node(nodes[i]).operands) replaced.apply(v);
    const ir::Node& node = graph.node(nodes[i]);
    if (!node.regions.empty() || !is_pure(graph, node)) continue;
    const auto [first, is_new] = by_text.try_emplace(text_of(graph, node), nodes[i]);
    if (is_new || i < forward || (own.has(first->second) && is_computed_anew(node))) continue;
    const std::vector<ValueId>&mine = node.results, &known = graph.node(first->second).results;
    if (mine.size() != known.size()) continue;
    if (own.has(first->second)) shared.push_back({nodes[i], first->second});
    for (std::size_t r = 0; r < mine.size(); ++r)
      if (graph.type(mine[r]) == graph.type(known[r])) replaced.add(mine[r], known[r]);
  }
  std::vector<ir::Output> outputs(graph.outputs().begin(), graph.outputs().end());
  for (ir::Output& output : outputs) replaced.apply(output.value);
  graph.set_outputs(std::move(outputs));
  for (std::optional<ValueId>& gradient : gradients)
    if (gradient) replaced.apply(*gradient);
  return shared;
}

}  // namespace tenon::rewrite
