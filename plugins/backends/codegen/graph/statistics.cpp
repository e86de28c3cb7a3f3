#include "graph/statistics.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/loop_body.h"
#include "core/ops/view.h"
#include "drafts/concatenation.h"

namespace tenon::codegen {
namespace {

using ir::Dim;

/// The most nodes between a concatenation and its reduction.
constexpr std::size_t kMostBetween = 4;

/// A node that reduces what is computed point by point from one concatenation.
struct JoinedReduction {
  NodeId reduction, cat;
  std::vector<NodeId> between;  // in the order of the graph
};

bool has_constant_sizes(const ir::Shape& shape) {
  return std::ranges::all_of(shape, [](const Dim& d) { return d.is_constant(); });
}

/// A node whose element depends on the same element of its operands alone.
bool is_pointwise(const ir::Graph& graph, const ir::Node& node, NodeId id) {
  if (node.results.size() != 1 || node.op == "cat") return false;
  const auto body = ops::loop_of(graph, id);
  if (!body || body->reducer || ops::is_view(*body)) return false;
  return std::ranges::all_of(node.operands, [&](ValueId v) {
    return graph.value(v).kind == ir::ValueKind::literal || graph.type(v).shape == graph.type(node.results[0]).shape;
  });
}

/// Adds what lies between the value and the concatenation that it is computed from; false when it is computed from something else too.
bool trace(const ir::Graph& graph, ValueId value, std::optional<NodeId>& cat, std::set<NodeId>& between) {
  const ir::Value& v = graph.value(value);
  if (v.kind == ir::ValueKind::literal) return true;
  if (v.kind != ir::ValueKind::result) return false;
  const ir::Node& node = graph.node(v.node);
  if (node.op == "cat") {
    const bool same = !cat || *cat == v.node;
    cat = v.node;
    return same;
  }
  if (between.contains(v.node)) return true;
  if (between.size() == kMostBetween || !is_pointwise(graph, node, v.node)) return false;
  between.insert(v.node);
  return std::ranges::all_of(node.operands, [&](ValueId operand) { return trace(graph, operand, cat, between); });
}

/// True when the node keeps the dimension as it is and gives those that it reduces the size 1.
bool keeps(const ir::Graph& graph, const ir::Node& node, std::size_t dim) {
  const ir::Shape &from = graph.type(node.operands[0]).shape, &to = graph.type(node.results[0]).shape;
  const ir::Attribute* reduced = node.attribute("dim");
  const auto* dims = reduced ? std::get_if<std::vector<Dim>>(reduced) : nullptr;
  if (!dims || from.size() != to.size() || !has_constant_sizes(from) || dims->empty()) return false;
  const auto rank = static_cast<std::int64_t>(from.size());
  return std::ranges::none_of(*dims, [&](const Dim& d) { return !d.is_constant() || (d.constant() + rank) % rank == static_cast<std::int64_t>(dim); });
}

std::optional<JoinedReduction> joined_reduction(const ir::Graph& graph, NodeId id, const std::map<NodeId, std::size_t>& position) {
  const ir::Node& node = graph.node(id);
  if (node.operands.size() != 1 || node.results.size() != 1 || !node.attribute("dim") || graph.type(node.results[0]).strides) return {};
  const auto body = ops::loop_of(graph, id);
  if (!body || !body->reducer) return {};
  std::optional<NodeId> cat;
  std::set<NodeId> between;
  if (!trace(graph, node.operands[0], cat, between) || !cat) return {};
  JoinedReduction found{id, *cat, {between.begin(), between.end()}};
  if (!keeps(graph, node, joined_dim(graph, graph.node(*cat)))) return {};
  if (!std::ranges::all_of(graph.node(*cat).operands, [&](ValueId part) { return has_constant_sizes(graph.type(part).shape); })) return {};
  std::ranges::sort(found.between, {}, [&](NodeId n) { return position.at(n); });
  return found;
}

/// Makes reductions of parts, each once.
class Parts {
 public:
  explicit Parts(ir::Graph& graph) : graph_(graph) {}

  /// The value that stands for the reduction.
  ValueId joined(const JoinedReduction& r) {
    const ir::Node cat = graph_.node(r.cat);
    std::vector<ValueId> reduced;
    for (ValueId part : cat.operands) reduced.push_back(of_part(r, cat.results[0], part));
    return ops::NodeBuilder(graph_, r.reduction).one("cat", reduced, cat.attributes);
  }

 private:
  ValueId of_part(const JoinedReduction& r, ValueId whole, ValueId part) {
    std::map<ValueId, ValueId> now{{whole, part}};
    for (NodeId id : r.between) now[graph_.node(id).results[0]] = made(r.reduction, id, now);
    return made(r.reduction, r.reduction, now);
  }

  /// The node with other operands, in front of another one.
  ValueId made(NodeId before, NodeId id, const std::map<ValueId, ValueId>& now) {
    const ir::Node node = graph_.node(id);
    std::vector<ValueId> operands;
    for (ValueId v : node.operands) operands.push_back(now.contains(v) ? now.at(v) : v);
    for (const Made& m : made_[operands[0]])
      if (m.op == node.op && m.operands == operands && m.attributes == node.attributes) return m.value;
    const ValueId value = ops::NodeBuilder(graph_, before).one(node.op, operands, node.attributes);
    made_[operands[0]].push_back({std::string(node.op), operands, node.attributes, value});
    return value;
  }

  struct Made {
    std::string op;
    std::vector<ValueId> operands;
    ir::Attributes attributes;
    ValueId value;
  };
  ir::Graph& graph_;
  std::map<ValueId, std::vector<Made>> made_;  // by first operand
};

/// True when at least half of the concatenation is reduced for others too.
bool is_shared(const ir::Graph& graph, NodeId cat, const std::map<ValueId, std::set<NodeId>>& readers) {
  std::int64_t all = 0, shared = 0;
  for (ValueId part : graph.node(cat).operands) {
    const std::int64_t elements = graph.type(part).element_count().constant();
    all += elements;
    if (readers.at(part).size() > 1) shared += elements;
  }
  return 2 * shared >= all;
}

}  // namespace

void share_statistics(ir::Graph& graph) {
  const auto nodes = graph.nodes();
  if (std::ranges::count_if(nodes, [&](NodeId id) { return graph.node(id).op == "cat"; }) < 2) return;
  std::map<NodeId, std::size_t> position;
  for (NodeId id : graph.nodes()) position.emplace(id, position.size());
  std::set<ValueId> outputs;
  for (const ir::Output& output : graph.outputs()) outputs.insert(output.value);
  std::vector<JoinedReduction> found;
  std::map<ValueId, std::set<NodeId>> readers;
  for (NodeId id : graph.nodes())
    if (auto reduction = joined_reduction(graph, id, position)) {
      for (ValueId part : graph.node(reduction->cat).operands) readers[part].insert(reduction->cat);
      found.push_back(std::move(*reduction));
    }
  std::erase_if(found, [&](const JoinedReduction& r) { return outputs.contains(graph.node(r.reduction).results[0]) || !is_shared(graph, r.cat, readers); });
  Parts parts(graph);
  std::set<NodeId> replaced;
  for (const JoinedReduction& r : found) {
    graph.replace_uses(graph.node(r.reduction).results[0], parts.joined(r));
    replaced.insert(r.reduction);
  }
  const auto users = graph.users();
  const auto is_replaced = [&](NodeId id) { return replaced.contains(id); };
  for (const JoinedReduction& r : found)
    for (std::size_t i = r.between.size(); i-- > 0;) {
      const ValueId value = graph.node(r.between[i]).results[0];
      if (!outputs.contains(value) && std::ranges::all_of(users[value.value], is_replaced)) replaced.insert(r.between[i]);
    }
  graph.erase_nodes(std::vector(replaced.begin(), replaced.end()));
}

}  // namespace tenon::codegen
