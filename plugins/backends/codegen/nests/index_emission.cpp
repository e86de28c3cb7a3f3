// Index expressions as code: each part is computed in the outermost loop where its symbols are known.
#include <algorithm>

#include <llvm/IR/Intrinsics.h>

#include "core/base/error.h"
#include "nests/nest_emitter.h"

namespace tenon::codegen {

using ir::DimAtom;
using ir::DimOp;
using ir::DimTerm;
using llvm::Value;

std::size_t NestEmitter::depth_of(SymbolId symbol) {
  if (is_graph_symbol(symbol)) return 0;
  if (is_value(symbol)) return depth_of(static_cast<OpId>(symbol.value - kFirstValue));
  auto found = symbol_depth_.find(symbol.value);
  TENON_CHECK(found != symbol_depth_.end(), "an index uses a loop that is not in its kernel");
  return found->second;
}

std::size_t NestEmitter::depth_of(const Dim& dim) {
  std::size_t deepest = 0;
  dim.for_each_symbol([&](SymbolId s) { deepest = std::max(deepest, depth_of(s)); });
  return deepest;
}

std::size_t NestEmitter::depth_of(OpId id) {
  if (auto found = op_depth_.find(id); found != op_depth_.end()) return found->second;
  const Operation& op = kernel_.operations[id];
  std::size_t deepest = depth_of(op.offset);
  if (op.kind == OperationKind::reduced) deepest = row_depth_;
  if (op.kind == OperationKind::old_value) deepest = std::max(row_depth_ + kernel_.inner.size(), depth());
  for (OpId a : op.args)
    if (a != kNoOp) deepest = std::max(deepest, depth_of(a));
  return op_depth_[id] = deepest;
}

bool NestEmitter::varies(const Dim& dim) {
  if (!lane_) return false;
  return std::ranges::any_of(dim.terms(), [&](const DimTerm& term) { return std::ranges::any_of(term.atoms, [&](const DimAtom& atom) { return varies(atom); }); });
}

bool NestEmitter::varies(const DimAtom& atom) {
  const SymbolId s = atom.symbol;
  if (atom.op == DimOp::symbol) return (is_loop(s) && s == *lane_) || (is_value(s) && varies(static_cast<OpId>(s.value - kFirstValue)));
  if (atom.op == DimOp::floor_div && lanes_share_quotient(atom)) return false;
  return varies(atom.operands[0]) || varies(atom.operands[1]);
}

/// Whether all lanes have the same quotient: they begin at a multiple of what is divided by, or of a part of it.
bool NestEmitter::lanes_share_quotient(const DimAtom& division) {
  const Dim& divisor = division.operands[1];
  Affine affine;
  if (!divisor.is_constant() || divisor.constant() <= 0 || divisor.constant() % b_.lanes() != 0) return false;
  return lane_affine(division.operands[0], affine) && affine.coefficient == Dim(1) && begins_at_multiple(division.operands[0]);
}

bool NestEmitter::varies(OpId id) {
  if (auto found = op_varies_.find(id); found != op_varies_.end()) return found->second;
  const Operation& op = kernel_.operations[id];
  const bool one_a_lane = op.kind == OperationKind::old_value || (op.kind == OperationKind::reduced && results_vary_);
  bool result = varies(op.offset) || (one_a_lane && lane_);
  for (OpId a : op.args) result = result || (a != kNoOp && varies(a));
  return op_varies_[id] = result && !lanes_share_comparison(op);
}

std::optional<Dim> NestEmitter::difference_of_indices(const Operation& op) const {
  const auto index_of = [&](OpId id) -> std::optional<Dim> {
    const Operation& o = kernel_.operations[id];
    if (o.kind == OperationKind::index) return o.offset;
    if (o.kind == OperationKind::constant && o.dtype == DType::i64) return Dim(static_cast<std::int64_t>(o.payload));
    return {};
  };
  const auto x = index_of(op.args[0]), y = index_of(op.args[1]);
  return x && y ? std::optional(*x - *y) : std::nullopt;
}

/// Whether all lanes are on the same side of a bound: they begin at a multiple of their number from it.
bool NestEmitter::lanes_share_comparison(const Operation& op) {
  if (!lane_ || op.kind != OperationKind::primitive || (op.primitive != ops::Primitive::lt && op.primitive != ops::Primitive::ge)) return false;
  const auto difference = difference_of_indices(op);
  Affine affine;
  return difference && lane_affine(*difference, affine) && affine.coefficient == Dim(1) && begins_at_multiple(*difference);
}

/// The value for lane 0 where the expression varies.
Value* NestEmitter::scalar(const Dim& dim) {
  if (dim.is_constant()) return index_number(dim.constant());
  const std::size_t home = depth_of(dim);
  for (auto& [known, v] : scopes_[home].dims)
    if (known == dim) return v;
  Dim shallow(dim.offset());
  std::vector<const DimTerm*> deep;
  for (const DimTerm& term : dim.terms()) {
    const Dim whole = term_of(term);
    if (depth_of(whole) < home) shallow = shallow + whole;
    else deep.push_back(&term);
  }
  Value* sum = shallow == Dim(0) && !deep.empty() ? nullptr : scalar(shallow);
  for (const DimTerm* term : deep) {
    Value* t = scalar_term(*term);
    AtScope at(ir_, scopes_[home]);
    sum = sum ? ir_.CreateAdd(sum, t) : t;
  }
  scopes_[home].dims.emplace_back(dim, sum);
  return sum;
}

Value* NestEmitter::scalar_term(const DimTerm& term) {
  std::vector<std::pair<std::size_t, Value*>> factors;
  for (const DimAtom& atom : term.atoms) factors.emplace_back(depth_of(atom_of(atom)), scalar_atom(atom));
  std::sort(factors.begin(), factors.end(), [](auto& a, auto& b) { return a.first < b.first; });
  Value* product = factors[0].second;
  for (std::size_t i = 1; i < factors.size(); ++i) {
    AtScope at(ir_, scopes_[factors[i].first]);
    product = ir_.CreateMul(product, factors[i].second);
  }
  if (term.coefficient == 1) return product;
  AtScope at(ir_, scopes_[factors.back().first]);
  return ir_.CreateMul(product, index_number(term.coefficient));
}

namespace {

Value* floor_quotient(llvm::IRBuilder<>& ir, Value* a, Value* b) {
  Value* q = ir.CreateSDiv(a, b);
  Value* r = ir.CreateSub(a, ir.CreateMul(q, b));
  Value* zero = llvm::ConstantInt::get(a->getType(), 0);
  Value* adjust = ir.CreateAnd(ir.CreateICmpNE(r, zero), ir.CreateICmpSLT(ir.CreateXor(r, b), zero));
  return ir.CreateSub(q, ir.CreateZExt(adjust, a->getType()));
}

}  // namespace

Value* NestEmitter::scalar_atom(const DimAtom& atom) {
  if (atom.op == DimOp::symbol) {
    const SymbolId s = atom.symbol;
    if (is_value(s)) {
      Lanes v = value(static_cast<OpId>(s.value - kFirstValue));
      return v.varying ? ir_.CreateExtractElement(v.value, std::uint64_t{0}) : v.value;
    }
    Scope& home = scopes_[depth_of(s)];
    auto found = home.symbols.find(s.value);
    if (found != home.symbols.end()) return found->second;
    TENON_CHECK(is_graph_symbol(s), "a loop variable has no value here");
    AtScope at(ir_, home);
    return home.symbols[s.value] = graph_symbol(s);
  }
  const Dim whole = atom_of(atom);
  const std::size_t home = depth_of(whole);
  for (auto& [known, v] : scopes_[home].dims)
    if (known == whole) return v;
  Value* a = scalar(atom.operands[0]);
  Value* b = scalar(atom.operands[1]);
  AtScope at(ir_, scopes_[home]);
  Value* result = nullptr;
  switch (atom.op) {
    case DimOp::floor_div: result = floor_quotient(ir_, a, b); break;
    case DimOp::mod: result = ir_.CreateSub(a, ir_.CreateMul(floor_quotient(ir_, a, b), b)); break;
    case DimOp::min: result = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b); break;
    default: result = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b); break;
  }
  scopes_[home].dims.emplace_back(whole, result);
  return result;
}

/// 0, 1, 2, ...; in a tail 0 for the lanes that do not exist.
Value* NestEmitter::lane_numbers(llvm::Type* type) {
  llvm::SmallVector<llvm::Constant*, 64> numbers;
  for (unsigned i = 0; i < b_.lanes(); ++i) numbers.push_back(llvm::ConstantInt::get(type, i));
  Value* all = llvm::ConstantVector::get(numbers);
  return tail_mask_ ? ir_.CreateSelect(tail_mask_, all, llvm::Constant::getNullValue(all->getType())) : all;
}

/// True when the expression is coefficient * lane + rest with both the same in all lanes.
bool NestEmitter::lane_affine(const Dim& dim, Affine& out) {
  auto split = lane_ ? split_affine(dim, *lane_) : std::nullopt;
  if (!split || varies(split->coefficient) || varies(split->rest)) return false;
  out = *split;
  return true;
}

Value* NestEmitter::vector(const Dim& dim) {
  if (!varies(dim)) return b_.splat(scalar(dim));
  Affine affine;
  if (lane_affine(dim, affine)) {
    Value* base = scalar(dim);
    Value* steps = lane_numbers(index_type_);
    if (!(affine.coefficient == Dim(1))) steps = ir_.CreateMul(steps, b_.splat(scalar(affine.coefficient)));
    return ir_.CreateAdd(b_.splat(base), steps);
  }
  Dim uniform(dim.offset());
  Value* sum = nullptr;
  for (const DimTerm& term : dim.terms()) {
    const Dim whole = term_of(term);
    if (!varies(whole)) {
      uniform = uniform + whole;
      continue;
    }
    Value* product = nullptr;
    for (const DimAtom& atom : term.atoms) {
      Value* factor = varies(atom_of(atom)) ? vector_atom(atom) : b_.splat(scalar(atom_of(atom)));
      product = product ? ir_.CreateMul(product, factor) : factor;
    }
    if (term.coefficient != 1) product = ir_.CreateMul(product, b_.splat(index_number(term.coefficient)));
    sum = sum ? ir_.CreateAdd(sum, product) : product;
  }
  return uniform == Dim(0) ? sum : ir_.CreateAdd(sum, b_.splat(scalar(uniform)));
}

Value* NestEmitter::vector_atom(const DimAtom& atom) {
  if (atom.op == DimOp::symbol) {
    if (is_value(atom.symbol)) return b_.widen(value(static_cast<OpId>(atom.symbol.value - kFirstValue))).value;
    return vector(Dim::symbol(atom.symbol));
  }
  if (atom.op == DimOp::floor_div || atom.op == DimOp::mod) return vector_division(atom);
  Value* a = vector(atom.operands[0]);
  Value* b = vector(atom.operands[1]);
  return ir_.CreateBinaryIntrinsic(atom.op == DimOp::min ? llvm::Intrinsic::smin : llvm::Intrinsic::smax, a, b);
}

/// Divides once in the outermost loop where the operands are known.
Value* NestEmitter::vector_division(const DimAtom& atom) {
  const Dim whole = atom_of(atom);
  const std::size_t home = depth_of(whole);
  llvm::Type* type = b_.widened(index_type_);
  for (const auto& [known, v] : scopes_[home].vectors)
    if (known == whole && v->getType() == type) return v;
  AtScope at(ir_, scopes_[home]);
  Value* result = divided_lanes(atom);
  scopes_[home].vectors.emplace_back(whole, result);
  return result;
}

/// The quotient of lane 0 is computed once; what a lane adds to its remainder is small, so that float64 divides it exactly.
Value* NestEmitter::divided_lanes(const DimAtom& atom) {
  const bool quotient = atom.op == DimOp::floor_div;
  Affine affine;
  const Dim& divisor = atom.operands[1];
  if (lanes_share_quotient(atom)) {
    if (quotient) return b_.splat(scalar(atom_of(atom)));
    if (divisor == Dim(b_.lanes())) return lane_numbers(index_type_);
  }
  if (!varies(divisor) && lane_affine(atom.operands[0], affine) && affine.coefficient.is_constant() && affine.coefficient.constant() > 0) {
    Value* d = scalar(divisor);
    Value* base = scalar(atom.operands[0]);
    Value* q = floor_quotient(ir_, base, d);
    Value* r = ir_.CreateSub(base, ir_.CreateMul(q, d));
    Value* steps = ir_.CreateMul(lane_numbers(index_type_), b_.splat(index_number(affine.coefficient.constant())));
    Value* t = ir_.CreateAdd(b_.splat(r), steps);
    llvm::Type* real = b_.widened(ir_.getDoubleTy());
    Value* ratio = ir_.CreateFDiv(ir_.CreateSIToFP(t, real), b_.splat(ir_.CreateSIToFP(d, ir_.getDoubleTy())));
    Value* extra = ir_.CreateFPToSI(ratio, b_.widened(index_type_));
    if (quotient) return ir_.CreateAdd(b_.splat(q), extra);
    return ir_.CreateSub(t, ir_.CreateMul(extra, b_.splat(d)));
  }
  const DType dtype = index_type_ == ir_.getInt64Ty() ? DType::i64 : DType::i32;
  const Lanes args[] = {{vector(atom.operands[0]), dtype, true}, {vector(divisor), dtype, true}};
  return b_.primitive(quotient ? ops::Primitive::floor_div : ops::Primitive::remainder, dtype, args).value;
}

Value* NestEmitter::buffer(std::uint64_t number) {
  Scope& entry = scopes_[0];
  const std::uint32_t key = 0xf0000000u + static_cast<std::uint32_t>(number);
  if (auto found = entry.symbols.find(key); found != entry.symbols.end()) return found->second;
  AtScope at(ir_, entry);
  return entry.symbols[key] = start_of_buffer(number);
}

Value* NestEmitter::place_in_buffer(std::uint64_t number, const Dim& offset) {
  llvm::Type* type = b_.storage_type(kernel_.buffers[number].dtype);
  Value* base = buffer(number);
  const auto split = lane_ ? split_affine(offset, *lane_) : std::nullopt;
  if (split && !varies(split->rest) && !(split->coefficient == Dim(0))) {
    Value* start = scalar(split->rest);
    const std::size_t home = depth_of(split->rest);
    Value* row = nullptr;
    {
      AtScope at(ir_, scopes_[home]);
      row = ir_.CreateGEP(type, base, start);
    }
    return ir_.CreateGEP(type, row, scalar(offset - split->rest));
  }
  return ir_.CreateGEP(type, base, scalar(offset));
}

}  // namespace tenon::codegen
