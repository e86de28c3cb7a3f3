#include "core/rewrite/op_properties.h"

#include <algorithm>

#include "core/ops/catalog.h"

namespace tenon::rewrite {
namespace {

using ops::Primitive;

bool is_commutative(Primitive p) {
  switch (p) {
    case Primitive::add:
    case Primitive::mul:
    case Primitive::minimum:
    case Primitive::maximum:
    case Primitive::eq:
    case Primitive::ne:
    case Primitive::logical_and:
    case Primitive::logical_or:
    case Primitive::logical_xor:
    case Primitive::bitwise_and:
    case Primitive::bitwise_or:
    case Primitive::bitwise_xor: return true;
    default: return false;
  }
}

constexpr std::size_t kMostInstructions = 16;  // the text below repeats what is shared

/// The program as an expression, from the result down; operands of commutative primitives are sorted.
std::string expression_text(const ops::ScalarProgram& program, std::uint32_t reg) {
  const ops::Instruction& instruction = program.instructions[reg];
  std::string text = fmt::format("{}:{}:{}", ops::name_of(instruction.op), static_cast<int>(instruction.dtype), instruction.payload);
  if (instruction.op <= Primitive::load) return text;
  std::vector<std::string> arguments;
  for (std::uint32_t argument : instruction.args) arguments.push_back(expression_text(program, argument));
  if (is_commutative(instruction.op)) std::sort(arguments.begin(), arguments.begin() + 2);
  return fmt::format("{}({})", text, fmt::join(arguments, ","));
}

/// The body with its two operands as they are, or exchanged; "" for one that is too long to look at.
std::string body_text(const ops::Op& op, const ops::OpQuery& query, DType dtype, bool exchanged) {
  ops::Scalars scalars;
  ops::Scalar operands[2] = {scalars.parameter(0, dtype), scalars.parameter(1, dtype)};
  if (exchanged) std::swap(operands[0], operands[1]);
  scalars.result(op.body(scalars, operands, query));
  const ops::ScalarProgram program = scalars.take();
  return program.instructions.size() > kMostInstructions ? "" : expression_text(program, program.results[0]);
}

}  // namespace

bool is_pointwise(const ir::Node& node) {
  const ops::Op* op = ops::find_op(node.op);
  return op && op->body;
}

bool commutes(const ir::Graph& graph, const ir::Node& node) {
  const ops::Op* op = ops::find_op(node.op);
  if (!op || !op->body || node.operands.size() != 2 || node.results.size() != 1) return false;
  const ops::OpQuery query(graph, node.operands, node.attributes);
  const auto tensor = std::ranges::find_if(node.operands, [&](ValueId v) { return graph.value(v).kind != ir::ValueKind::literal; });
  const DType dtype = compute_type(graph.type(tensor == node.operands.end() ? node.operands[0] : *tensor).dtype);
  const std::string text = body_text(*op, query, dtype, false);
  return !text.empty() && text == body_text(*op, query, dtype, true);
}

}  // namespace tenon::rewrite
