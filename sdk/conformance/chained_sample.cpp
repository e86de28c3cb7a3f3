#include "chained_sample.h"

#include "core/ops/build/node_builder.h"
#include "sample_operands.h"

namespace tenon::conformance {

std::optional<ir::Graph> chained(const ops::Op& op, const ops::Sample& sample) {
  if (sample.operands.empty() || sample.operands[0].literal) return {};
  ir::Graph graph;
  std::vector<ValueId> operands = add_operands(graph, sample, [&](std::size_t, const auto& operand) { return add_input(graph, operand); });
  ops::NodeBuilder builder(graph);
  const ValueId first = builder.call(op.name, operands, sample.attributes).at(0);
  if (graph.type(first) != graph.type(operands[0])) return {};
  operands[0] = first;
  add_outputs(graph, builder.call(op.name, operands, sample.attributes));
  return graph;
}

}  // namespace tenon::conformance
