#include "fusion/operand.h"

#include <algorithm>

namespace tenon::codegen {

std::set<SymbolId> loops_of(const OperationList& operations, OpId root) {
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

std::optional<std::int64_t> divisor_of(const OperationList& operations, SymbolId loop) {
  for (const Operation& op : operations.all())
    if (op.kind == OperationKind::load)
      if (auto found = divisor_in(op.offset, loop)) return found;
  return {};
}

std::optional<InPlace> in_place(const Draft& draft, OpId root, std::span<const Loop> loops) {
  const Operation& op = draft.operations()[root];
  if (op.kind != OperationKind::load || op.masked) return {};
  InPlace result{draft.buffers()[op.payload], op.offset, {}};
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

namespace {

/// Copies what `root` needs, with loads numbered anew.
class Extraction {
 public:
  Extraction(const Draft& draft, const FusionContext& context, std::span<const std::pair<SymbolId, Dim>> replacements)
      : draft_(draft), context_(context), replacements_(replacements) {}

  OpId copy(OpId id) {
    if (auto known = copies_.find(id); known != copies_.end()) return known->second;
    Operation op = draft_.operations()[id];
    for (OpId& a : op.args)
      if (a != kNoOp) a = copy(a);
    for (const auto& [loop, by] : replacements_) op.offset = context_.algebra.substitute(op.offset, loop, by);
    if (op.kind == OperationKind::load) op.payload = buffer(draft_.buffers()[op.payload]);
    return copies_[id] = add(op);
  }

  /// Adds an operation that gives where the load reads.
  OpId place_of(OpId load) {
    Dim offset = draft_.operations()[load].offset;
    for (const auto& [loop, by] : replacements_) offset = context_.algebra.substitute(offset, loop, by);
    if (offset.is_constant()) return number(offset.constant());
    return add({.kind = OperationKind::index, .dtype = DType::i64, .offset = offset});
  }

  OpId number(std::int64_t n) { return add({.kind = OperationKind::constant, .dtype = DType::i64, .payload = static_cast<std::uint64_t>(n)}); }

  OpId add(Operation op) {
    result_.kernel.operations.push_back(std::move(op));
    return static_cast<OpId>(result_.kernel.operations.size() - 1);
  }

  KernelStep take(OpId value, DType dtype, Dim offset) {
    result_.kernel.buffers.push_back({dtype, Dim(0), true});
    result_.buffers.push_back(kPanel);
    const auto panel = static_cast<std::uint32_t>(result_.buffers.size() - 1);
    result_.kernel.stages.push_back({StageKind::row, {}, {{panel, std::move(offset), value}}});
    return std::move(result_);
  }

 private:
  std::uint64_t buffer(ValueId value) {
    auto found = std::find(result_.buffers.begin(), result_.buffers.end(), value);
    if (found == result_.buffers.end()) {
      const ir::Type& type = context_.graph.type(value);
      result_.kernel.buffers.push_back({type.dtype, type.element_count() * Dim(static_cast<std::int64_t>(size_of(type.dtype))), false});
      found = result_.buffers.insert(result_.buffers.end(), value);
    }
    return static_cast<std::uint64_t>(found - result_.buffers.begin());
  }

  const Draft& draft_;
  const FusionContext& context_;
  std::span<const std::pair<SymbolId, Dim>> replacements_;
  std::unordered_map<OpId, OpId> copies_;
  KernelStep result_;
};

}  // namespace

KernelStep storing(const Draft& draft, OpId root, const FusionContext& context, std::span<const std::pair<SymbolId, Dim>> replacements, Dim offset) {
  Extraction extraction(draft, context, replacements);
  const OpId value = extraction.copy(root);
  return extraction.take(value, draft.operations()[root].dtype, std::move(offset));
}

KernelStep locating(const Draft& draft, OpId load, OpId mask, const FusionContext& context, std::span<const std::pair<SymbolId, Dim>> replacements, Dim offset) {
  Extraction extraction(draft, context, replacements);
  OpId place = extraction.place_of(load);
  if (mask != kNoOp) {
    Operation choice{.kind = OperationKind::primitive, .primitive = ops::Primitive::select, .dtype = DType::i64};
    choice.args[0] = extraction.copy(mask), choice.args[1] = place, choice.args[2] = extraction.number(-1);
    place = extraction.add(choice);
  }
  return extraction.take(place, DType::i64, std::move(offset));
}

}  // namespace tenon::codegen
