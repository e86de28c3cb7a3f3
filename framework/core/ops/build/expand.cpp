#include "core/ops/build/expand.h"

#include <bit>

#include "core/ops/catalog.h"
#include "core/ops/infer.h"

namespace tenon::ops {
namespace {

/// Programs become nodes one instruction at a time; values are tensors, or literals.
class ProgramExpansion {
 public:
  ProgramExpansion(NodeBuilder& builder, const ScalarProgram& program, std::span<const ir::ValueId> parameters, const ir::Shape& shape,
                   const LeafExpansion& leaf = {})
      : builder_(builder), parameters_(parameters), shape_(shape), leaf_(leaf) {
    for (const Instruction& i : program.instructions) values_.push_back(value_of(program, i));
  }

  const std::vector<ir::ValueId>& values() const { return values_; }

  ir::ValueId result(const ScalarProgram& program, std::size_t index) {
    const std::uint32_t reg = program.results[index];
    return materialise(values_[reg], program.instructions[reg].dtype);
  }

 private:
  ir::ValueId value_of(const ScalarProgram& program, const Instruction& i) {
    switch (i.op) {
      case Primitive::constant: return builder_.literal(constant(i));
      case Primitive::extent: return builder_.literal(program.dims[i.payload]);
      case Primitive::parameter: return parameter(i);
      case Primitive::loop_index:
      case Primitive::load: return leaf_(i, values_);
      case Primitive::convert: return builder_.cast(materialise(values_[i.args[0]], program.instructions[i.args[0]].dtype), i.dtype);
      case Primitive::bit_cast:
        return builder_.one("bit_cast", {materialise(values_[i.args[0]], program.instructions[i.args[0]].dtype)}, {{"dtype", i.dtype}});
      default: return operation(program, i);
    }
  }

  static ir::Literal constant(const Instruction& i) {
    if (i.dtype == DType::f64) return std::bit_cast<double>(i.payload);
    if (i.dtype == DType::f32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(i.payload)));
    if (i.dtype == DType::b8) return i.payload != 0;
    return ir::Dim(static_cast<std::int64_t>(i.payload));
  }

  ir::ValueId parameter(const Instruction& i) {
    const ir::ValueId operand = parameters_[i.payload];
    return builder_.graph().value(operand).kind == ir::ValueKind::literal ? operand : builder_.cast(operand, i.dtype);
  }

  ir::ValueId operation(const ScalarProgram& program, const Instruction& i) {
    const Op* op = find_op(op_of(i.op));
    TENON_CHECK(op, "no op for the primitive {}", name_of(i.op));
    std::vector<ir::ValueId> operands;
    bool any_tensor = false;
    for (std::size_t k = 0; k < arity(i.op); ++k) {
      operands.push_back(values_[i.args[k]]);
      any_tensor |= !is_literal(operands.back()) && !(i.op == Primitive::select && k == 0);
    }
    // Literals are weak: without a tensor beside them their dtype would be lost.
    if (!any_tensor) {
      const std::size_t first = i.op == Primitive::select ? 1 : 0;
      operands[first] = materialise(operands[first], program.instructions[i.args[first]].dtype);
    }
    if (i.op == Primitive::select) operands[0] = materialise(operands[0], DType::b8);
    return builder_.one(op->name, std::move(operands));
  }

  bool is_literal(ir::ValueId v) const { return builder_.graph().value(v).kind == ir::ValueKind::literal; }

  ir::ValueId materialise(ir::ValueId v, DType dtype) {
    return is_literal(v) ? builder_.one("full", {v}, {{"dtype", dtype}, {"size", shape_}}) : v;
  }

  NodeBuilder& builder_;
  std::span<const ir::ValueId> parameters_;
  const ir::Shape shape_;
  const LeafExpansion& leaf_;
  std::vector<ir::ValueId> values_;
};

}  // namespace

std::string_view op_of(Primitive p) {
  if (p <= Primitive::load) return {};
  switch (p) {
    case Primitive::select: return "where";
    case Primitive::convert: return "_to_copy";
    case Primitive::floor_div: return "floor_divide";
    case Primitive::trunc_div: return "trunc_divide";
    default: return name_of(p);
  }
}

ir::Graph decomposition(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  const Op* op = find_op(node.op);
  TENON_CHECK(op && op->decompose, "the op {} has no decomposition", node.op);
  ir::Graph simpler;
  simpler.name = node.op;
  for (const ir::SymbolInfo& s : graph.symbols()) simpler.add_symbol(s);
  std::vector<ir::ValueId> operands;
  for (ir::ValueId v : node.operands) {
    const ir::Value& value = graph.value(v);
    operands.push_back(value.kind == ir::ValueKind::literal ? simpler.add_literal(value.literal)
                                                            : simpler.add_input(graph.type(v), value.name));
  }
  NodeBuilder builder(simpler);
  builder.at(node.location);
  builder.on(infer::device_of(graph, node));
  operands = builder.brought_here(std::move(operands));
  const OpQuery query(simpler, operands, node.attributes);
  for (ir::ValueId result : op->decompose(builder, query)) simpler.add_output({.value = result});
  return simpler;
}

DType literal_dtype(const OpQuery& query, DType result) {
  bool has_tensor = query.operand_count() == 0;
  for (std::size_t i = 0; i < query.operand_count(); ++i) {
    if (!query.literal(i) && !is_bool(query.type(i).dtype)) return compute_type(query.type(i).dtype);
    has_tensor = has_tensor || !query.literal(i);
  }
  return compute_type(has_tensor ? result : query.type(0).dtype);
}

ScalarProgram body_program(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  const Op* op = find_op(node.op);
  TENON_CHECK(op && op->body, "the op {} has no scalar body", node.op);
  const OpQuery query(graph, node.operands, node.attributes);
  const DType dtype = literal_dtype(query, graph.type(node.results[0]).dtype);
  Scalars s;
  std::vector<Scalar> arguments;
  for (std::size_t i = 0; i < query.operand_count(); ++i)
    arguments.push_back(s.parameter(i, query.literal(i) ? dtype : compute_type(query.type(i).dtype)));
  s.result(op->body(s, arguments, query));
  return s.take();
}

std::vector<ir::ValueId> expand_program(NodeBuilder& builder, const ScalarProgram& program, std::span<const ir::ValueId> parameters,
                                        const ir::Shape& shape) {
  ProgramExpansion expansion(builder, program, parameters, shape);
  std::vector<ir::ValueId> results;
  for (std::size_t k = 0; k < program.results.size(); ++k) results.push_back(expansion.result(program, k));
  return results;
}

std::vector<ir::ValueId> expand_registers(NodeBuilder& builder, const ScalarProgram& program, const ir::Shape& shape, const LeafExpansion& leaf) {
  return ProgramExpansion(builder, program, {}, shape, leaf).values();
}

ir::ValueId expand_body(NodeBuilder& builder, ir::NodeId id) {
  const ir::Node node = builder.graph().node(id);
  const ir::Type type = builder.graph().type(node.results[0]);
  const ir::ValueId value = expand_program(builder, body_program(builder.graph(), id), node.operands, type.shape)[0];
  return builder.cast(value, type.dtype);
}

bool expand_node(ir::Graph& graph, ir::NodeId id, const Moved& moved) {
  const ir::Node node = graph.node(id);
  const Op* op = find_op(node.op);
  if (!op || (!op->decompose && !op->body)) return false;
  NodeBuilder builder(graph, id);
  builder.at(node.location);
  std::vector<ir::ValueId> values;
  if (op->decompose) {
    const std::vector<ir::ValueId> operands = builder.brought_here(node.operands);
    values = op->decompose(builder, OpQuery(graph, operands, node.attributes));
  } else {
    values = {expand_body(builder, id)};
  }
  for (std::size_t k = 0; k < values.size(); ++k) {
    graph.replace_uses(node.results[k], values[k]);
    if (moved) moved(node.results[k], values[k]);
  }
  graph.erase_nodes(std::array{id});
  return true;
}

}  // namespace tenon::ops
