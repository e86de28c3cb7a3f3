#include "core/base/error.h"
#include "core/ops/catalog.h"
#include "core/ops/node_builder.h"
#include "fusion/plan.h"

namespace tenon::codegen {

void decompose_composites(ir::Graph& graph) {
  std::vector<NodeId> pending(graph.nodes().begin(), graph.nodes().end());
  std::vector<NodeId> replaced;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const NodeId id = pending[i];
    const ir::Node node = graph.node(id);
    const ops::Op* op = ops::find_op(node.op);
    if (!op || op->body || op->loop || op->scatter || op->kernel || !op->decompose) continue;
    const std::size_t before = graph.node_capacity();
    ops::NodeBuilder builder(graph, id);
    builder.at(node.location);
    const ops::OpQuery query(graph, node.operands, node.attributes);
    std::vector<ValueId> results;
    try {
      results = op->decompose(builder, query);
    } catch (const Exception&) {  // it needs to know sizes: the library computes the node when they are known
      for (std::size_t fresh = before; fresh < graph.node_capacity(); ++fresh) replaced.push_back(NodeId(fresh));
      continue;
    }
    for (std::size_t r = 0; r < results.size(); ++r) graph.replace_uses(node.results[r], results[r]);
    for (std::size_t fresh = before; fresh < graph.node_capacity(); ++fresh) pending.push_back(NodeId(fresh));
    replaced.push_back(id);
  }
  graph.erase_nodes(replaced);
}

}  // namespace tenon::codegen
