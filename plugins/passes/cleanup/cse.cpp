#include "cse.h"

#include <algorithm>
#include <unordered_map>

#include "core/rewrite/pattern.h"
#include "core/rewrite/rewriter.h"

namespace tenon::cleanup {
namespace {

void combine(std::size_t& hash, std::size_t value) { hash = hash * 0x9e3779b97f4a7c15ull + value + (hash >> 29); }

/// Equal nodes have equal hashes. Literals and attributes take part by kind only: few nodes differ in nothing else.
std::size_t hash_of(const ir::Graph& graph, const ir::Node& node) {
  std::size_t hash = std::hash<std::string>{}(node.op);
  for (ValueId operand : node.operands) {
    const ir::Value& value = graph.value(operand);
    combine(hash, value.kind == ir::ValueKind::literal ? ~value.literal.index() : operand.value);
  }
  for (const ir::NamedAttribute& attribute : node.attributes) {
    const auto* integer = std::get_if<ir::Dim>(&attribute.value);
    combine(hash, integer ? integer->hash() : attribute.value.index());
  }
  return hash;
}

bool equal(const ir::Graph& graph, const ir::Node& a, const ir::Node& b) {
  const auto same_operand = [&](ValueId x, ValueId y) { return rewrite::same_value(graph, x, y); };
  const auto same_type = [&](ValueId x, ValueId y) { return graph.type(x) == graph.type(y); };
  return a.op == b.op && a.attributes == b.attributes && std::ranges::equal(a.operands, b.operands, same_operand) &&
         std::ranges::equal(a.results, b.results, same_type);
}

bool may_merge(const ir::Graph& graph, const ir::Node& node) { return node.regions.empty() && rewrite::is_pure(graph, node); }

void merge_equal_nodes(ir::Graph& graph) {
  rewrite::Rewriter rewriter(graph);
  std::unordered_multimap<std::size_t, NodeId> seen;
  const std::vector<NodeId> order(graph.nodes().begin(), graph.nodes().end());
  for (NodeId id : order) {
    const ir::Node& node = graph.node(id);
    if (!may_merge(graph, node)) continue;
    const std::size_t hash = hash_of(graph, node);
    const auto [first, last] = seen.equal_range(hash);
    const auto twin = std::find_if(first, last, [&](const auto& entry) { return equal(graph, graph.node(entry.second), node); });
    if (twin == last) {
      seen.emplace(hash, id);
      continue;
    }
    for (std::size_t i = 0; i < node.results.size(); ++i) rewriter.replace(node.results[i], graph.node(twin->second).results[i]);
    rewriter.erase(id);
  }
  rewriter.finish();
}

}  // namespace

void cse(ir::Graph& graph, const PassContext&) { rewrite::for_each_graph(graph, merge_equal_nodes); }

}  // namespace tenon::cleanup
