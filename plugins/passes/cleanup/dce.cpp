#include "dce.h"

#include <algorithm>
#include <ranges>

#include "core/ir/outputs.h"
#include "core/rewrite/rewriter.h"

namespace tenon::cleanup {
namespace {

/// True when the node, or one in its regions, does something besides giving results.
bool has_effect(const ir::Graph& graph, const ir::Node& node) {
  if (!rewrite::is_pure(graph, node) || rewrite::may_raise(node)) return true;
  return std::ranges::any_of(node.regions, [&](RegionId id) {
    const ir::Graph& region = graph.region(id);
    return std::ranges::any_of(region.nodes(), [&](NodeId inner) { return has_effect(region, region.node(inner)); });
  });
}

void remove_dead_nodes(ir::Graph& graph) {
  std::vector<bool> read = ir::output_values(graph);

  std::vector<NodeId> dead;
  for (NodeId id : std::views::reverse(graph.nodes())) {
    const ir::Node& node = graph.node(id);
    const bool lives = std::ranges::any_of(node.results, [&](ValueId r) { return read[r.value]; }) || has_effect(graph, node);
    if (lives) {
      for (ValueId operand : node.operands) read[operand.value] = true;
    } else {
      dead.push_back(id);
    }
  }
  graph.erase_nodes(dead);
}

}  // namespace

void dce(ir::Graph& graph, const PassContext&) { rewrite::for_each_graph(graph, remove_dead_nodes); }

}  // namespace tenon::cleanup
