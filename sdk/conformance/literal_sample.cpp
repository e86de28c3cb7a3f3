#include "literal_sample.h"

#include <algorithm>

#include "core/ops/node_builder.h"
#include "sample_operands.h"

namespace tenon::conformance {
namespace {

ir::Literal number_for(DType dtype) {
  if (is_bool(dtype)) return true;
  if (is_int(dtype)) return ir::Dim(3);
  return 1.5;
}

}  // namespace

std::optional<LiteralSample> with_literal_operand(const ops::Op& op, const ops::Sample& sample) {
  const auto tensors = static_cast<std::size_t>(std::ranges::count_if(sample.operands, [](const auto& operand) { return !operand.literal; }));
  if (tensors < 2) return {};
  LiteralSample made;
  made.input = tensors - 1;
  const auto operands = add_operands(made.graph, sample, [&](std::size_t input, const ops::SampleOperand& operand) {
    return input == made.input ? made.graph.add_literal(number_for(operand.dtype)) : add_input(made.graph, operand);
  });
  try {
    add_outputs(made.graph, ops::NodeBuilder(made.graph).call(op.name, operands, sample.attributes));
  } catch (const Exception& refusal) {
    if (refusal.code() == Code::internal) throw;
    return {};
  }
  return made;
}

}  // namespace tenon::conformance
