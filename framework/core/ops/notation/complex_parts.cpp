#include "core/ops/notation/complex_parts.h"

#include <algorithm>

namespace tenon::ops {
namespace {

/// The node that gives a value, where that is one of the op.
const ir::Node* made_by(const ir::Graph& graph, ir::ValueId value, std::string_view op) {
  if (graph.value(value).kind != ir::ValueKind::result) return nullptr;
  const ir::Node& node = graph.node(graph.value(value).node);
  return node.op == op ? &node : nullptr;
}

DType real_type_of(const OpQuery& q) {
  for (std::size_t i = 0; i < q.operand_count(); ++i)
    if (!q.literal(i) && is_complex(q.type(i).dtype)) return real_type(q.type(i).dtype);
  throw Exception(Code::unsupported, "complex arithmetic of real operands");
}

std::vector<Parts> parts_of(ComplexFormula& f, const OpQuery& q) {
  const DType real = real_type_of(q);
  std::vector<Parts> all;
  for (ir::ValueId operand : q.operands()) all.push_back(f.of(operand, real));
  return all;
}

}  // namespace

Parts ComplexFormula::of(V value, DType real) {
  const ir::Graph& graph = b_.graph();
  const auto zero = [&] { return b_.full(0.0, real, {}); };
  if (graph.value(value).kind == ir::ValueKind::literal) return {b_.one("full", {value}, {{"dtype", real}, {"size", std::vector<ir::Dim>{}}}), zero()};
  if (!is_complex(graph.type(value).dtype)) return {b_.cast(value, real), zero()};
  const ir::Shape shape = graph.type(value).shape;
  if (const ir::Node* node = made_by(graph, value, "complex")) {
    const Parts parts{node->operands[0], node->operands[1]};
    const auto whole = [&](V part) { return graph.value(part).kind != ir::ValueKind::literal && graph.type(part).shape == shape; };
    if (whole(parts.real) && whole(parts.imaginary)) return parts;
  }
  if (const ir::Node* node = made_by(graph, value, "_to_copy"); node && !is_complex(graph.type(node->operands[0]).dtype)) return {b_.cast(node->operands[0], real), zero()};
  const ir::ValueId first = b_.one("real", {value});
  return {first, b_.one("imag", {value})};
}

Parts ComplexFormula::product(const Parts& a, const Parts& b) {
  return {sub(mul(a.real, b.real), mul(a.imaginary, b.imaginary)), add(mul(a.real, b.imaginary), mul(a.imaginary, b.real))};
}

Op with_value_of_complex(Op op, ValueOfParts value) {
  op.of_complex = [value = std::move(value)](NodeBuilder& builder, const OpQuery& q, Flavour flavour) -> Values {
    ComplexFormula f(builder);
    return {value(f, parts_of(f, q), q, flavour)};
  };
  return op;
}

Op with_complex(Op op, OfParts parts) {
  return with_value_of_complex(std::move(op), [parts = std::move(parts)](ComplexFormula& f, std::span<const Parts> z, const OpQuery& q, Flavour flavour) {
    return f.join(parts(f, z, q, flavour));
  });
}

Op part_by_part(Op op) {
  op.of_complex = [name = op.name](NodeBuilder& builder, const OpQuery& q, Flavour) -> Values {
    ComplexFormula f(builder);
    ir::Attributes attributes(q.attributes());
    const DType result = q.dtype("dtype", q.type(0).dtype);
    if (!is_complex(result)) throw Exception(error(Code::unsupported, "{} of complex numbers as {}", name, name_of(result)));
    for (ir::NamedAttribute& each : attributes)
      if (each.name == "dtype") each.value = real_type(result);
    const Parts z = f.of(q.operands()[0], real_type(q.type(0).dtype));
    return {f.join({builder.one(name, {z.real}, attributes), builder.one(name, {z.imaginary}, attributes)})};
  };
  return op;
}

Family with_complex(Family ops, const std::vector<std::pair<std::string_view, OfParts>>& meanings) {
  for (const auto& [name, parts] : meanings) {
    const auto op = std::ranges::find(ops, name, &Op::name);
    TENON_CHECK(op != ops.end(), "no op {} to give a complex meaning", name);
    *op = with_complex(std::move(*op), parts);
  }
  return ops;
}

}  // namespace tenon::ops
