#include "host/partition/expansion.h"

#include "core/ops/expand.h"

namespace tenon::host {
namespace {

constexpr std::size_t kMaxDepth = 12;

/// Replaces `node` and, among what replaces it, what is chosen too.
void expand_into(ExpandedGraph& expanded, NodeId node, const ExpansionChoice& choice) {
  const ExpansionPath path = expanded.paths[node.value];
  if (!choice.contains(path) || path.size() > kMaxDepth) return;
  const std::size_t before = expanded.graph.node_capacity();
  const std::string op = expanded.graph.node(node).op;
  if (!ops::expand_node(expanded.graph, node)) return;
  const std::size_t after = expanded.graph.node_capacity();
  // The body of a primitive is that primitive: nothing is gained, and going on would never end.
  const bool same = after == before + 1 && expanded.graph.node(NodeId(before)).op == op;
  if (!same) expanded.done.insert(path);
  for (std::size_t n = before; n < after; ++n) {
    ExpansionPath child = path;
    child.push_back(static_cast<std::uint32_t>(n - before));
    expanded.paths.push_back(std::move(child));
  }
  for (std::size_t n = before; n < after && !same; ++n) expand_into(expanded, NodeId(n), choice);
}

}  // namespace

ExpandedGraph expand(const ir::Graph& graph, const ExpansionChoice& choice) {
  ExpandedGraph expanded{graph.clone(), std::vector<ExpansionPath>(graph.node_capacity()), {}};
  const std::vector<NodeId> originals(graph.nodes().begin(), graph.nodes().end());
  for (std::size_t i = 0; i < originals.size(); ++i) expanded.paths[originals[i].value] = {static_cast<std::uint32_t>(i)};
  for (NodeId n : originals) expand_into(expanded, n, choice);
  return expanded;
}

}  // namespace tenon::host
