#include "sample_operands.h"

namespace tenon::conformance {

std::vector<ValueId> add_operands(ir::Graph& graph, const ops::Sample& sample, const AddTensor& add_tensor) {
  std::vector<ValueId> operands;
  std::size_t tensors = 0;
  for (const ops::SampleOperand& operand : sample.operands)
    operands.push_back(operand.literal ? graph.add_literal(*operand.literal) : add_tensor(tensors++, operand));
  return operands;
}

ValueId add_input(ir::Graph& graph, const ops::SampleOperand& operand) {
  return graph.add_input(ir::Type::tensor(operand.dtype, {operand.shape.begin(), operand.shape.end()}));
}

void add_outputs(ir::Graph& graph, const std::vector<ValueId>& values) {
  for (ValueId value : values) graph.add_output({.value = value, .kind = ir::OutputKind::result, .target = {}});
}

}  // namespace tenon::conformance
