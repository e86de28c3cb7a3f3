#include "literal_sample.h"

#include "core/ops/build/node_builder.h"
#include "core/ops/check/type_checker.h"
#include "sample_operands.h"

namespace tenon::conformance {
namespace {

ir::Literal number_for(DType dtype) {
  if (is_bool(dtype)) return true;
  if (is_int(dtype)) return ir::Dim(3);
  return 1.5;
}

}  // namespace

std::optional<ir::Graph> with_literal_operand(const ops::Op& op, const ops::Sample& sample, std::size_t input) {
  ir::Graph graph;
  const auto operands = add_operands(graph, sample, [&](std::size_t i, const ops::SampleOperand& operand) {
    return i == input ? graph.add_literal(number_for(operand.dtype)) : add_input(graph, operand);
  });
  try {
    add_outputs(graph, ops::NodeBuilder(graph).call(op.name, operands, sample.attributes));
  } catch (const Exception& refusal) {
    if (refusal.code() == Code::internal) throw;
    return {};
  }
  if (!ops::accept_graph(graph).ok()) return {};
  return graph;
}

}  // namespace tenon::conformance
