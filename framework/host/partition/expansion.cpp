#include "host/partition/expansion.h"

#include <string>

#include "core/ops/build/expand.h"
#include "host/plugins/contact/cancellation.h"

namespace tenon::host {
namespace {

constexpr std::size_t kMaxDepth = 12;

/// Replaces chosen nodes and, among what replaces them, what is chosen too.
class Expander {
 public:
  Expander(ExpandedGraph& expanded, const ExpansionChoice& choice) : expanded_(expanded), choice_(choice) {}

  void expand(NodeId node) {
    const ExpansionPath path = expanded_.paths[node.value];
    const std::string op = expanded_.graph.node(node).op;
    if (!choice_.contains(path) || path.size() > kMaxDepth) return;
    const std::size_t before = expanded_.graph.node_capacity();
    if (!ops::expand_node(expanded_.graph, node)) return;
    const std::size_t after = expanded_.graph.node_capacity();
    // The body of a primitive is that primitive: nothing is gained, and going on would never end.
    if (after == before + 1 && expanded_.graph.node(NodeId(before)).op == op) {
      expanded_.paths.push_back(path);
      return;
    }
    for (std::size_t n = before; n < after; ++n) {
      ExpansionPath child = path;
      child.push_back(static_cast<std::uint32_t>(n - before));
      expanded_.paths.push_back(std::move(child));
    }
    expanded_.done.insert(path);
    for (std::size_t n = before; n < after; ++n) expand(NodeId(n));
  }

 private:
  ExpandedGraph& expanded_;
  const ExpansionChoice& choice_;
};

}  // namespace

ExpandedGraph expand(const ir::Graph& graph, const ExpansionChoice& choice) {
  ExpandedGraph expanded{graph.clone(), std::vector<ExpansionPath>(graph.node_capacity()), {}};
  const std::vector<NodeId> originals(graph.nodes().begin(), graph.nodes().end());
  for (std::size_t i = 0; i < originals.size(); ++i) expanded.paths[originals[i].value] = {static_cast<std::uint32_t>(i)};
  Expander expander(expanded, choice);
  for (NodeId n : originals) stop_if_cancelled(), expander.expand(n);
  return expanded;
}

}  // namespace tenon::host
