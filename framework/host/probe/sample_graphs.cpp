#include "sample_graphs.h"

#include <algorithm>

#include "core/ops/catalog.h"
#include "core/ops/reference/sample.h"

namespace tenon::probe {
namespace {

ir::Graph without_nodes() {
  ir::Graph graph;
  const ValueId x = graph.add_input(ir::Type::tensor(DType::f32, {2, 3}), "x");
  graph.add_output({x, ir::OutputKind::result, {}});
  return graph;
}

/// Two nodes of an op that nothing knows: to be refused, not to crash on.
ir::Graph of_unknown_op(const ir::Shape& shape, ir::Graph graph) {
  const ir::Type type = ir::Type::tensor(DType::f32, shape);
  const ValueId x = graph.add_input(type, "x");
  const NodeId first = graph.add_node("probe::unknown", {x}, {{"dim", ir::Dim(1)}}, {type});
  const NodeId second = graph.add_node("probe::unknown", {graph.node(first).results[0], x}, {}, {type});
  graph.add_output({graph.node(second).results[0], ir::OutputKind::result, {}});
  return graph;
}

ir::Graph with_symbols() {
  ir::Graph graph;
  const SymbolId rows = graph.add_symbol({"s0", 1, 1024});
  const ir::Dim n = ir::Dim::symbol(rows);
  return of_unknown_op({n, n * ir::Dim(2) + ir::Dim(1)}, std::move(graph));
}

/// How many ops of the catalogue are tried: enough for each family, and quick.
constexpr std::size_t kOps = 12;

/// The first sample of every n-th op.
void add_catalogue_samples(std::vector<ir::Graph>& graphs) {
  const auto ops = ops::all_ops();
  const std::size_t step = std::max<std::size_t>(1, ops.size() / kOps);
  for (std::size_t i = 0; i < ops.size(); i += step) {
    if (!ops[i].samples) continue;
    const std::vector<ops::Sample> samples = ops::samples_of(ops[i]);
    if (!samples.empty()) graphs.push_back(ops::sample_graph(ops[i], samples.front()));
  }
}

}  // namespace

std::vector<ir::Graph> sample_graphs() {
  std::vector<ir::Graph> graphs;
  graphs.push_back(without_nodes());
  graphs.push_back(of_unknown_op({4, 5}, ir::Graph()));
  graphs.push_back(with_symbols());
  add_catalogue_samples(graphs);
  return graphs;
}

}  // namespace tenon::probe
