#include "constant_sample.h"

#include <memory>

#include "core/ops/node_builder.h"
#include "sample_operands.h"
#include "test_inputs.h"

namespace tenon::conformance {
namespace {

/// Adds a constant with the bytes of a row-major input, and the node that reads it.
ValueId add_constant(ir::Graph& graph, TestInput input) {
  ir::Shape shape(input.view.shape.begin(), input.view.shape.end());
  const ir::Type type = ir::Type::tensor(input.view.dtype, std::move(shape));
  auto owner = std::make_shared<const TestInput>(std::move(input));
  const void* data = owner->view.data;
  const ConstantId constant = graph.add_constant({type, data, std::move(owner), {}});
  const NodeId node = graph.add_node("constant", {}, {{"index", ir::Dim(constant.value)}}, {type});
  return graph.node(node).results[0];
}

}  // namespace

std::optional<ConstantSample> with_constant_operand(const ops::Op& op, const ops::Sample& sample, std::uint64_t seed) {
  auto inputs = make_inputs(sample, seed, {.row_major = true});
  if (inputs.empty()) return {};
  ConstantSample made;
  made.input = inputs.size() - 1;

  const auto operands = add_operands(made.graph, sample, [&](std::size_t input, const ops::SampleOperand& operand) {
    return input == made.input ? add_constant(made.graph, std::move(inputs[input])) : add_input(made.graph, operand);
  });
  add_outputs(made.graph, ops::NodeBuilder(made.graph).call(op.name, operands, sample.attributes));
  return made;
}

}  // namespace tenon::conformance
