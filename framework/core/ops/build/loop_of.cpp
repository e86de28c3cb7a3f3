#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"

namespace tenon::ops {

Scalar literal_scalar(Scalars& s, const ir::Literal& literal, DType dtype) {
  if (const bool* b = std::get_if<bool>(&literal)) return s.constant(dtype, std::int64_t{*b});
  if (const double* d = std::get_if<double>(&literal)) return s.constant(dtype, *d);
  const ir::Dim& dim = std::get<ir::Dim>(literal);
  return dim.is_constant() ? s.constant(dtype, dim.constant()) : s.convert(s.extent(dim), dtype);
}

namespace {

/// The element of an operand that broadcasting puts at the loops' point.
Scalar broadcast_load(Scalars& s, const OpQuery& q, std::size_t operand, const ir::Shape& result) {
  const ir::Type& type = q.type(operand);
  const std::size_t lead = result.size() - type.rank();
  std::vector<Scalar> indices;
  for (std::size_t i = 0; i < type.rank(); ++i) {
    const bool repeats = type.shape[i] == ir::Dim(1);
    indices.push_back(repeats ? s.constant(DType::i64, std::int64_t{0}) : s.loop_index(lead + i));
  }
  return s.load(operand, type.dtype, indices);
}

LoopBody pointwise_loop(const Op& op, const OpQuery& q, const ir::Type& result) {
  Scalars s;
  std::vector<Scalar> arguments;
  for (std::size_t i = 0; i < q.operand_count(); ++i)
    arguments.push_back(q.literal(i) ? literal_scalar(s, *q.literal(i), literal_dtype(q, result.dtype)) : broadcast_load(s, q, i, result.shape));
  s.result(op.body(s, arguments, q));
  return {.extents = result.shape, .element = s.take()};
}

}  // namespace

std::optional<LoopBody> loop_of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  const Op* op = find_op(node.op);
  if (!op) return std::nullopt;
  const OpQuery query(graph, node.operands, node.attributes);
  if (op->loop) return op->loop(query);
  if (op->body) return pointwise_loop(*op, query, graph.type(node.results[0]));
  return std::nullopt;
}

}  // namespace tenon::ops
