#include "graph/decomposition.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/error.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"

namespace tenon::codegen {

void decompose_composites(ir::Graph& graph, bool in_loops) {
  std::vector<NodeId> pending(graph.nodes().begin(), graph.nodes().end());
  std::vector<NodeId> replaced;
  std::unordered_map<std::uint32_t, ValueId> instead;  // by value: read in its place
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const NodeId id = pending[i];
    const ir::Node node = graph.node(id);
    const ops::Op* op = ops::find_op(node.op);
    if (!op) continue;
    const bool as_loops = in_loops && op->in_loops;
    const auto& decompose = as_loops ? op->in_loops : op->decompose;
    if (op->body || op->loop || op->scatter || (op->kernel && !as_loops) || !decompose) continue;
    const std::size_t before = graph.node_capacity();
    ops::NodeBuilder builder(graph, id);
    builder.at(node.location);
    const ops::OpQuery query(graph, node.operands, node.attributes);
    std::vector<ValueId> results;
    try {
      results = decompose(builder, query);
    } catch (const Exception&) {  // it needs to know sizes: the library computes the node when they are known
      for (std::size_t fresh = before; fresh < graph.node_capacity(); ++fresh) replaced.push_back(NodeId(fresh));
      continue;
    }
    for (std::size_t r = 0; r < results.size(); ++r) instead.emplace(node.results[r].value, results[r]);
    for (std::size_t fresh = before; fresh < graph.node_capacity(); ++fresh) pending.push_back(NodeId(fresh));
    replaced.push_back(id);
  }
  auto follow = [&](ValueId& value) {
    for (auto next = instead.find(value.value); next != instead.end(); next = instead.find(value.value)) value = next->second;
  };
  for (NodeId id : graph.nodes()) std::ranges::for_each(graph.mutable_node(id).operands, follow);
  std::vector<ir::Output> outputs(graph.outputs().begin(), graph.outputs().end());
  for (ir::Output& output : outputs) follow(output.value);
  graph.set_outputs(std::move(outputs));
  graph.erase_nodes(replaced);
}

}  // namespace tenon::codegen
