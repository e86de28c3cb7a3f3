#include "constant_sample.h"

#include <algorithm>

#include <memory>

#include "core/ops/build/node_builder.h"
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

ir::Graph with_constants(const ops::Op& op, const ops::Sample& sample, std::span<const std::size_t> constants, std::uint64_t seed) {
  auto inputs = make_inputs(sample, seed, {.row_major = true});
  ir::Graph graph;
  const auto operands = add_operands(graph, sample, [&](std::size_t input, const ops::SampleOperand& operand) {
    return std::ranges::binary_search(constants, input) ? add_constant(graph, std::move(inputs[input])) : add_input(graph, operand);
  });
  add_outputs(graph, ops::NodeBuilder(graph).call(op.name, operands, sample.attributes));
  return graph;
}

}  // namespace tenon::conformance
