#include "drafts/concatenation.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::codegen {
namespace {

using ir::Dim;

bool has_known_layout(const ir::Type& type) {
  return type.strides && std::all_of(type.shape.begin(), type.shape.end(), [](const Dim& d) { return d.is_constant(); });
}

/// True when steps of the plan compute it, and nobody but they see where it lies.
bool may_lie_in_another(const ir::Graph& graph, ValueId value) {
  const ir::Value& v = graph.value(value);
  if (v.kind != ir::ValueKind::result || !has_known_layout(graph.type(value))) return false;
  const ir::Node& node = graph.node(v.node);
  return node.op != "cat" && node.op != "constant" && node.results.size() == 1;
}

bool begins(const ir::Node& shorter, const ir::Node& longer) {
  return shorter.operands.size() <= longer.operands.size() && std::equal(shorter.operands.begin(), shorter.operands.end(), longer.operands.begin());
}

/// The nodes that begin the longest of them, which comes last.
std::vector<NodeId> nested(const ir::Graph& graph, std::vector<NodeId> nodes) {
  std::stable_sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return graph.node(a).operands.size() < graph.node(b).operands.size(); });
  const ir::Node& longest = graph.node(nodes.back());
  std::erase_if(nodes, [&](NodeId id) { return !begins(graph.node(id), longest); });
  return nodes;
}

Concatenation make(ir::Graph& graph, const std::vector<NodeId>& nodes, std::size_t dim) {
  const ir::Node& longest = graph.node(nodes.back());
  Concatenation made{longest.results[0], {}, {}};
  const ir::Shape strides = *graph.type(made.whole).strides;
  Dim offset(0);
  for (ValueId part : longest.operands) {
    made.parts.push_back({part, offset});
    offset = offset + graph.type(part).shape[dim] * strides[dim];
    graph.set_strides(part, strides);
  }
  for (NodeId id : nodes) {
    made.beginnings.push_back(graph.node(id).results[0]);
    graph.set_strides(made.beginnings.back(), strides);
  }
  return made;
}

}  // namespace

std::size_t joined_dim(const ir::Graph& graph, const ir::Node& node) {
  const std::int64_t dim = std::get<Dim>(*node.attribute("dim")).constant();
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(graph.type(node.results[0]).rank()) : dim);
}

std::vector<Concatenation> join_concatenations(ir::Graph& graph) {
  std::map<std::pair<ValueId, std::size_t>, std::vector<NodeId>> by_first;
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.op == "cat" && has_known_layout(graph.type(node.results[0]))) by_first[{node.operands[0], joined_dim(graph, node)}].push_back(id);
  }
  std::vector<Concatenation> found;
  std::set<ValueId> taken;
  for (const auto& [key, nodes] : by_first) {
    const std::vector<NodeId> group = nested(graph, nodes);
    const std::vector<ValueId> parts = graph.node(group.back()).operands;
    const bool distinct = std::set<ValueId>(parts.begin(), parts.end()).size() == parts.size();
    const bool free = std::all_of(parts.begin(), parts.end(), [&](ValueId p) { return may_lie_in_another(graph, p) && !taken.contains(p); });
    if (group.size() < 2 || !distinct || !free) continue;
    taken.insert(parts.begin(), parts.end());
    found.push_back(make(graph, group, key.second));
  }
  return found;
}

}  // namespace tenon::codegen
