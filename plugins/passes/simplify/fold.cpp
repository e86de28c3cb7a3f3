#include "fold.h"

#include "core/rewrite/constant_values.h"
#include "core/rewrite/rewriter.h"

namespace tenon::simplify {
namespace {

constexpr std::size_t kMostBytes = 64 << 10;

/// Puts one constant in the place of each result.
void replace_results(rewrite::Rewriter& rewriter, NodeId id, std::vector<ops::HostTensor> values) {
  ir::Graph& graph = rewriter.graph();
  const std::vector<ValueId> results = graph.node(id).results;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ir::Type type = graph.type(results[i]);
    rewriter.replace(results[i], rewrite::add_constant_node(graph, id, type, std::move(values[i])));
  }
  rewriter.erase(id);
}

}  // namespace

void fold(ir::Graph& graph, const PassContext&) {
  rewrite::Rewriter rewriter(graph);
  const std::vector<NodeId> order(graph.nodes().begin(), graph.nodes().end());
  for (NodeId node : order)
    if (auto values = rewrite::evaluate_node(graph, node, kMostBytes)) replace_results(rewriter, node, std::move(*values));
  rewriter.finish();
}

}  // namespace tenon::simplify
