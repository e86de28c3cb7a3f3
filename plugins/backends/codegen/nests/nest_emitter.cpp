#include "nests/nest_emitter.h"

#include <llvm/IR/Intrinsics.h>

#include "core/base/error.h"

namespace tenon::codegen {

using llvm::Value;
using P = ops::Primitive;

NestEmitter::Carried NestEmitter::counted(Value* low, Value* high, std::int64_t step, bool whole_steps, Carried initial, const CarriedBody& body,
                                              const std::function<void(llvm::BasicBlock*)>& enter_body, const std::function<void()>& leave_body) {
  auto& context = ir_.getContext();
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(context, "head", function_);
  auto* inside = llvm::BasicBlock::Create(context, "body", function_);
  auto* after = llvm::BasicBlock::Create(context, "after", function_);
  ir_.CreateBr(head);
  ir_.SetInsertPoint(head);
  llvm::PHINode* position = ir_.CreatePHI(ir_.getInt64Ty(), 2);
  position->addIncoming(low, before);
  Carried values;
  for (Value* v : initial) {
    llvm::PHINode* phi = ir_.CreatePHI(v->getType(), 2);
    phi->addIncoming(v, before);
    values.push_back(phi);
  }
  Value* last = whole_steps ? ir_.CreateAdd(position, ir_.getInt64(static_cast<std::uint64_t>(step))) : nullptr;
  Value* more = whole_steps ? ir_.CreateICmpSLE(last, high) : ir_.CreateICmpSLT(position, high);
  ir_.CreateCondBr(more, inside, after);
  enter_body(inside);
  const Carried next = body(position, values);
  Value* advanced = ir_.CreateAdd(position, ir_.getInt64(static_cast<std::uint64_t>(step)));
  llvm::BasicBlock* latch = ir_.GetInsertBlock();
  ir_.CreateBr(head);
  position->addIncoming(advanced, latch);
  for (std::size_t i = 0; i < next.size(); ++i) llvm::cast<llvm::PHINode>(values[i])->addIncoming(next[i], latch);
  leave_body();
  enter(after);
  values.push_back(position);
  return values;
}

NestEmitter::Carried NestEmitter::loop(Value* low, Value* high, std::int64_t step, bool whole_steps, SymbolId variable, Carried initial,
                                           const CarriedBody& body) {
  auto with_variable = [&](Value* position, Carried values) {
    if (variable) here().symbols[variable.value] = position;
    return body(position, std::move(values));
  };
  auto open = [&](llvm::BasicBlock* block) {
    scopes_.emplace_back();
    enter(block);
  };
  return counted(low, high, step, whole_steps, std::move(initial), with_variable, open, [&] { scopes_.pop_back(); });
}

NestEmitter::Carried NestEmitter::plain_loop(Value* low, Value* high, std::int64_t step, Carried initial, const CarriedBody& body) {
  auto values = counted(low, high, step, false, std::move(initial), body, [&](llvm::BasicBlock* block) { ir_.SetInsertPoint(block); }, [] {});
  values.pop_back();
  return values;
}

void NestEmitter::decode_outer(Value* number, std::size_t loops) {
  for (std::size_t i = loops; i-- > 0;) {
    Value* index = number;
    if (i > 0) {
      Value* extent = scalar(kernel_.outer[i].extent);
      index = ir_.CreateURem(number, extent);
      number = ir_.CreateUDiv(number, extent);
    }
    here().symbols[kernel_.outer[i].variable.value] = index;
  }
}

void NestEmitter::for_inner(std::size_t first, std::size_t last, const std::function<void()>& body) {
  if (first == last) return body();
  const Loop& l = kernel_.inner[first];
  loop(ir_.getInt64(0), scalar(l.extent), 1, false, l.variable, {}, [&](Value*, Carried) {
    for_inner(first + 1, last, body);
    return Carried{};
  });
}

Lanes NestEmitter::value(OpId id) {
  const Operation& op = kernel_.operations[id];
  if (op.kind == OperationKind::constant) return b_.constant(op.dtype, op.payload);
  const std::size_t home = depth_of(id);
  TENON_CHECK(home <= depth(), "an operation is used outside of its loop");
  if (auto found = scopes_[home].values.find(id); found != scopes_[home].values.end()) return found->second;
  for (OpId a : op.args)
    if (a != kNoOp) value(a);
  AtScope at(ir_, scopes_[home]);
  const Lanes result = compute(id);
  scopes_[home].values[id] = result;
  return result;
}

Lanes NestEmitter::compute(OpId id) {
  const Operation& op = kernel_.operations[id];
  switch (op.kind) {
    case OperationKind::primitive: return primitive(op);
    case OperationKind::index: {
      const bool varying = varies(op.offset);
      Value* index = varying ? vector(op.offset) : scalar(op.offset);
      return {index_type_ == ir_.getInt64Ty() ? index : ir_.CreateSExt(index, varying ? b_.widened(ir_.getInt64Ty()) : ir_.getInt64Ty()), DType::i64, varying};
    }
    case OperationKind::load: return load(op);
    case OperationKind::checked: return checked(op);
    case OperationKind::old_value: return old_value(op);
    default: break;
  }
  TENON_CHECK(false, "a reduction is read before its stage");
}

Lanes NestEmitter::primitive(const Operation& op) {
  const std::size_t count = arity(op.primitive);
  if (op.primitive >= P::eq && op.primitive <= P::ge)
    if (const Lanes known = compare_indices(op); known.value) return known;
  Lanes args[3];
  bool varying = false;
  for (std::size_t i = 0; i < count; ++i) varying |= varies(op.args[i]);
  for (std::size_t i = 0; i < count; ++i) {
    const bool condition = op.primitive == P::select && i == 0;
    args[i] = varying && !condition ? widened(op.args[i]) : value(op.args[i]);
  }
  Lanes result = b_.primitive(op.primitive, op.dtype, {args, count});
  if (op.masked) result.value = ir_.CreateArithmeticFence(result.value, result.value->getType());  // LLVM would choose once, after what may raise a flag
  return result;
}

Lanes NestEmitter::compare_indices(const Operation& op) {
  const auto difference = difference_of_indices(op);
  if (!difference) return {};
  const bool is_short = index_type_ != ir_.getInt64Ty();
  if (lanes_share_comparison(op) || (is_short && !varies(*difference))) {
    const DType dtype = is_short ? DType::i32 : DType::i64;
    const Lanes args[] = {{scalar(*difference), dtype, false}, {index_number(0), dtype, false}};
    return b_.primitive(op.primitive, DType::b8, args);
  }
  return lane_ ? Lanes{compare_lanes(op.primitive, *difference), DType::b8, true} : Lanes{};
}

/// Compares a difference of indices with 0: lane numbers in 32 bits instead of indices in 64. Null when the difference does not
/// step by one a lane.
Value* NestEmitter::compare_lanes(P comparison, const Dim& difference) {
  Affine affine;
  if (!varies(difference) || !lane_affine(difference, affine) || !(affine.coefficient == Dim(1))) return nullptr;
  Value* rest = scalar(-difference);  // of lane 0: lane number against it
  Value* low = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, rest, index_number(-1));
  Value* clamped = ir_.CreateTrunc(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, low, index_number(b_.lanes() + 1)), ir_.getInt32Ty());
  const Lanes args[] = {{lane_numbers(ir_.getInt32Ty()), DType::i32, true}, {b_.splat(clamped), DType::i32, true}};
  return b_.primitive(comparison, DType::b8, args).value;
}

Lanes NestEmitter::widened(OpId id) {
  const Lanes v = value(id);
  if (v.varying) return v;
  if (llvm::isa<llvm::Constant>(v.value)) return b_.widen(v);
  Scope& home = scopes_[depth_of(id)];
  const auto key = std::make_pair(id, b_.lanes());
  auto found = home.widened.find(key);
  if (found != home.widened.end()) return {found->second, v.dtype, true};
  AtScope at(ir_, home);
  const Lanes wide = b_.widen(v);
  home.widened[key] = wide.value;
  return wide;
}

}  // namespace tenon::codegen
