#include "graph/extremes.h"

#include <algorithm>
#include <vector>

#include "core/ops/build/node_builder.h"

namespace tenon::codegen {

void share_extremes(ir::Graph& graph) {
  std::vector<NodeId> plain, with_places, done;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).op == "max_pool") plain.push_back(id);
    if (graph.node(id).op == "max_pool_with_indices") with_places.push_back(id);
  }
  for (NodeId pool : plain) {
    const ir::Node node = graph.node(pool);
    const auto same = std::ranges::find_if(with_places, [&](NodeId id) { return graph.node(id).operands == node.operands && graph.node(id).attributes == node.attributes; });
    if (same == with_places.end() || graph.type(node.results[0]).strides != graph.type(graph.node(*same).results[0]).strides) continue;
    const ir::Node other = graph.node(*same);
    const auto both = ops::NodeBuilder(graph, pool).call("max_pool_with_indices", node.operands, node.attributes);
    graph.replace_uses(node.results[0], both[0]);
    for (std::size_t r = 0; r < both.size(); ++r) graph.replace_uses(other.results[r], both[r]);
    done.push_back(pool), done.push_back(*same);
    with_places.erase(same);
  }
  graph.erase_nodes(done);
}

}  // namespace tenon::codegen
