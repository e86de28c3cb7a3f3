#include <algorithm>
#include <cstring>

#include "core/base/float16.h"
#include "core/rewrite/constant_values.h"
#include "core/rewrite/op_properties.h"
#include "rule_set.h"

namespace tenon::canonical {
namespace {

using namespace rewrite;

bool is_literal(const ir::Graph& graph, ValueId value) { return graph.value(value).kind == ir::ValueKind::literal; }

/// The matched node again, with other operands; nothing when the op does not take them.
std::optional<ValueId> with_operands(Match& m, std::vector<ValueId> operands) {
  const std::string op = m.node().op;
  const ir::Attributes attributes = m.node().attributes;
  try {
    return m.make(op, std::move(operands), attributes);
  } catch (const Exception& refusal) {
    if (refusal.code() == Code::internal) throw;
    return {};
  }
}

/// a + b = b + a, for ops whose body says so.
std::optional<ValueId> in_order(Match& m) {
  const ir::Graph& graph = m.rewriter().graph();
  const std::vector<ValueId> operands = m.node().operands;
  if (operands.size() != 2) return {};
  const auto key = [&](ValueId v) { return std::pair(is_literal(graph, v), v.value); };
  const bool are_literals = is_literal(graph, operands[0]) && is_literal(graph, operands[1]);
  if (are_literals || key(operands[0]) <= key(operands[1]) || !commutes(graph, m.node())) return {};
  return with_operands(m, {operands[1], operands[0]});
}

/// The literal of a number, when a tensor of that dtype holds exactly what an op computes with the literal: a float literal is rounded to
/// the dtype in which the op computes, which for float16 and bfloat16 is wider than the tensor's.
std::optional<ir::Literal> float_literal(DType dtype, double value) {
  const auto single = static_cast<float>(value);
  if (dtype == DType::f16 && float_of_half(half_of_float(single)) != single) return {};
  if (dtype == DType::bf16 && float_of_bfloat16(bfloat16_of_float(single)) != single) return {};
  return ir::Literal(value);
}

/// What every element of a tensor of that dtype is, when it was filled with the literal.
std::optional<ir::Literal> as_filled(DType dtype, const ir::Graph& graph, ValueId fill) {
  const auto number = number_of(graph, fill);
  if (!number) return {};
  const ir::Literal& literal = graph.value(fill).literal;
  if (is_float(dtype)) return float_literal(dtype, *number);
  if (is_bool(dtype)) return ir::Literal(*number != 0);
  const auto* integer = std::get_if<ir::Dim>(&literal);
  return is_int(dtype) && integer ? std::optional(ir::Literal(*integer)) : std::nullopt;
}

template <class T>
T read(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

/// The value of a 0-d constant whose bytes are at hand.
std::optional<ir::Literal> scalar_constant(const ir::Constant& constant) {
  if (!constant.type.shape.empty()) return {};
  switch (constant.type.dtype) {
    case DType::b8: return ir::Literal(read<std::uint8_t>(constant.data) != 0);
    case DType::i32: return ir::Literal(ir::Dim(read<std::int32_t>(constant.data)));
    case DType::i64: return ir::Literal(ir::Dim(read<std::int64_t>(constant.data)));
    case DType::f32: return ir::Literal(double{read<float>(constant.data)});
    case DType::f64: return ir::Literal(read<double>(constant.data));
    default: return {};
  }
}

/// The one value of all elements, where it is known.
std::optional<ir::Literal> known_value(Rewriter& rewriter, ValueId value) {
  const ir::Graph& graph = rewriter.graph();
  if (const ir::Constant* constant = constant_of(graph, value)) return scalar_constant(*constant);
  const ir::Node* node = rewriter.definition(value);
  if (!node || node->op != "full") return {};
  return as_filled(graph.type(value).dtype, graph, node->operands[0]);
}

/// x + full(c) = x + c. Another tensor of that dtype must be left, as it says what the literal is; a result that loses dimensions is not
/// used.
std::optional<ValueId> with_literals(Match& m) {
  if (!is_pointwise(m.node()) || m.node().operands.size() < 2) return {};
  const ir::Graph& graph = m.rewriter().graph();
  std::vector<ValueId> operands = m.node().operands;
  const auto tensors_like = [&](ValueId v) {
    return std::ranges::count_if(operands, [&](ValueId other) { return !is_literal(graph, other) && graph.type(other).dtype == graph.type(v).dtype; });
  };
  for (ValueId& operand : operands) {
    if (is_literal(graph, operand) || tensors_like(operand) < 2) continue;
    const auto literal = known_value(m.rewriter(), operand);
    if (!literal) continue;
    operand = m.literal(*literal);
    return with_operands(m, std::move(operands));
  }
  return {};
}

/// What a view repeats, when the view only does what broadcasting does: expands, or puts dimensions of size 1 in front.
std::optional<ValueId> broadcast_source(Rewriter& rewriter, ValueId value) {
  const ir::Node* node = rewriter.definition(value);
  if (!node || (node->op != "expand" && node->op != "reshape")) return {};
  const ir::Shape& to = rewriter.graph().type(value).shape;
  const ir::Shape& from = rewriter.graph().type(node->operands[0]).shape;
  if (node->op == "expand") return node->operands[0];
  if (to.size() <= from.size()) return {};
  const auto lead = static_cast<std::ptrdiff_t>(to.size() - from.size());
  const bool adds_ones = std::all_of(to.begin(), to.begin() + lead, [](const ir::Dim& d) { return d == ir::Dim(1); });
  return adds_ones && std::equal(from.begin(), from.end(), to.begin() + lead) ? std::optional(node->operands[0]) : std::nullopt;
}

/// expand(x) + y = x + y, where y (or another operand) has the shape of the result.
std::optional<ValueId> with_implicit_broadcast(Match& m) {
  if (!is_pointwise(m.node()) || m.node().operands.size() < 2) return {};
  std::vector<ValueId> operands = m.node().operands;
  const ir::Shape result = m.type().shape;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto source = broadcast_source(m.rewriter(), operands[i]);
    const bool another_has_the_shape = std::ranges::any_of(operands, [&](ValueId other) {
      return other != operands[i] && m.rewriter().graph().type(other).shape == result;
    });
    if (!source || !another_has_the_shape) continue;
    operands[i] = *source;
    return with_operands(m, std::move(operands));
  }
  return {};
}

}  // namespace

RuleSet operand_rules() {
  return {
      {"operand_order", any(0), in_order},
      {"literal_operand", any(0), with_literals},
      {"implicit_broadcast", any(0), with_implicit_broadcast},
  };
}

}  // namespace tenon::canonical
