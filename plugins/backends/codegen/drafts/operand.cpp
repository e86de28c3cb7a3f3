#include "drafts/operand.h"

#include <algorithm>

#include "core/ops/view.h"

namespace tenon::codegen {

std::set<SymbolId> loops_of(std::span<const Operation> operations, OpId root) {
  std::set<SymbolId> loops;
  const Operation& op = operations[root];
  op.offset.for_each_symbol([&](SymbolId s) {
    if (is_loop(s)) loops.insert(s);
  });
  for (OpId a : op.args)
    if (a != kNoOp) loops.merge(loops_of(operations, a));
  return loops;
}

namespace {

std::optional<std::int64_t> divisor_in(const Dim& dim, SymbolId loop) {
  for (const ir::DimTerm& term : dim.terms())
    for (const ir::DimAtom& atom : term.atoms) {
      if (atom.op == ir::DimOp::symbol) continue;
      const bool divides = atom.op == ir::DimOp::floor_div || atom.op == ir::DimOp::mod;
      if (divides && atom.operands[0] == Dim::symbol(loop) && atom.operands[1].is_constant()) return atom.operands[1].constant();
      for (const Dim& operand : atom.operands)
        if (auto found = divisor_in(operand, loop)) return found;
    }
  return {};
}

}  // namespace

std::optional<std::int64_t> divisor_of(std::span<const Operation> operations, SymbolId loop) {
  for (const Operation& op : operations)
    if (op.kind == OperationKind::load)
      if (auto found = divisor_in(op.offset, loop)) return found;
  return {};
}

std::optional<ir::ValueId> half_before_cast(const ir::Graph& graph, ir::ValueId value) {
  const ir::Value& v = graph.value(value);
  if (v.kind != ir::ValueKind::result || !ops::is_view(graph, v.node)) return {};
  const ir::ValueId before = graph.node(v.node).operands[0];
  const ir::Type &from = graph.type(before), &to = graph.type(value);
  return is_reduced_float(from.dtype) && compute_type(from.dtype) == to.dtype && from.shape == to.shape ? std::optional(before) : std::nullopt;
}

std::optional<InPlace> in_place(std::span<const Operation> operations, std::span<const ir::ValueId> buffers, OpId root, std::span<const Loop> loops) {
  const Operation& op = operations[root];
  if (op.kind != OperationKind::load || op.masked) return {};
  InPlace result{buffers[op.payload], op.offset, {}};
  for (const Loop& l : loops) {
    const auto split = split_affine(result.offset, l.variable);
    if (!split) return {};
    result.strides.push_back(split->coefficient);
    result.offset = split->rest;
  }
  bool varies = false;
  auto look = [&](const Dim& d) { d.for_each_symbol([&](SymbolId s) { varies |= !is_graph_symbol(s); }); };
  look(result.offset);
  for (const Dim& s : result.strides) look(s);
  if (varies) return {};
  return result;
}

}  // namespace tenon::codegen
