// Loads whose index is no affine expression of the lane, but steps evenly over most vectors of lanes: what wraps, mirrors or is split
// into rows (roll, pad, repeat, windows) breaks its run seldom.
#include <algorithm>

#include <llvm/IR/CFG.h>

#include "core/base/error.h"
#include "vectors/kernel_emitter_impl.h"

namespace tenon::llvm_backend {

using ir::DimAtom;
using ir::DimOp;
using llvm::Value;

/// Nothing when that cannot be told from lane 0.
std::optional<KernelEmitter::Run> KernelEmitter::run_of(const Dim& index) {
  Run run = {ir_.getTrue(), ir_.getInt64(0)};
  for (const ir::DimTerm& term : index.terms()) {
    if (!varies(term_of(term))) continue;
    const DimAtom* moving = nullptr;
    Dim factor(term.coefficient);
    for (const DimAtom& atom : term.atoms) {
      if (!varies(atom_of(atom))) factor = factor * atom_of(atom);
      else if (moving) return {};
      else moving = &atom;
    }
    const auto part = run_of(*moving);
    if (!part) return {};
    run.even = ir_.CreateAnd(run.even, part->even);
    run.step = ir_.CreateAdd(run.step, ir_.CreateMul(part->step, scalar(factor)));
  }
  return run;
}

std::optional<KernelEmitter::Run> KernelEmitter::run_of(const DimAtom& atom) {
  if (atom.op == DimOp::symbol) {
    if (is_value(atom.symbol)) return {};
    return Run{ir_.getTrue(), ir_.getInt64(1)};
  }
  const auto a = run_of(atom.operands[0]), b = run_of(atom.operands[1]);
  if (!a || !b) return {};
  Value* last = ir_.getInt64(b_.lanes() - 1);
  if (atom.op == DimOp::floor_div || atom.op == DimOp::mod) {
    if (varies(atom.operands[1])) return {};
    // One quotient for all lanes: the remainder of the first, moved to the last lane, is still one.
    Value* end = ir_.CreateAdd(scalar(mod(atom.operands[0], atom.operands[1])), ir_.CreateMul(a->step, last));
    Value* even = ir_.CreateAnd(a->even, ir_.CreateICmpULT(end, scalar(atom.operands[1])));
    return Run{even, atom.op == DimOp::mod ? a->step : ir_.getInt64(0)};
  }
  // One of the two in the first and in the last lane, so in all: their difference is affine where both are.
  Value* zero = ir_.getInt64(0);
  Value* start = ir_.CreateSub(scalar(atom.operands[0]), scalar(atom.operands[1]));
  Value* end = ir_.CreateAdd(start, ir_.CreateMul(ir_.CreateSub(a->step, b->step), last));
  Value* less = ir_.CreateICmpSLE(start, zero);
  Value* same = ir_.CreateICmpEQ(less, ir_.CreateICmpSLE(end, zero));
  Value* step = atom.op == DimOp::min ? ir_.CreateSelect(less, a->step, b->step) : ir_.CreateSelect(less, b->step, a->step);
  return Run{ir_.CreateAnd(ir_.CreateAnd(a->even, b->even), same), step};
}

/// The elements in storage form: a contiguous load, forwards or backwards, where the lanes are a run, else a gather.
Value* KernelEmitter::run_or_gather(const Operation& op, Value* mask) {
  const auto run = tail_mask_ ? std::nullopt : run_of(op.offset);
  if (!run) return gathered_elements(op, mask);
  auto* known_step = llvm::dyn_cast<llvm::ConstantInt>(run->step);
  const bool backwards = known_step && known_step->getSExtValue() == -1;
  if (known_step && !backwards && !known_step->isOne()) return gathered_elements(op, mask);
  Value* contiguous = backwards ? run->even : ir_.CreateAnd(run->even, ir_.CreateICmpEQ(run->step, ir_.getInt64(1)));
  Value* first = element_address(op.payload, op.offset);
  const auto in_one_load = [&] { return backwards ? backward_elements(op, first, mask) : elements_at(op, first, mask); };
  if (llvm::isa<llvm::ConstantInt>(contiguous)) return llvm::cast<llvm::ConstantInt>(contiguous)->isOne() ? in_one_load() : gathered_elements(op, mask);
  return either(contiguous, in_one_load, [&] { return gathered_elements(op, mask); });
}

Value* KernelEmitter::elements_at(const Operation& op, Value* address, Value* mask) {
  const DType storage = kernel_.buffers[op.payload].dtype;
  llvm::Type* type = b_.widened(b_.storage_type(storage));
  return mask ? masked_elements(storage, address, mask, llvm::Constant::getNullValue(type)) : ir_.CreateAlignedLoad(type, address, llvm::Align(size_of(storage)));
}

Value* KernelEmitter::backward_elements(const Operation& op, Value* first, Value* mask) {
  llvm::Type* element = b_.storage_type(kernel_.buffers[op.payload].dtype);
  Value* low = ir_.CreateGEP(element, first, ir_.getInt64(static_cast<std::uint64_t>(1 - static_cast<std::int64_t>(b_.lanes()))));
  return ir_.CreateVectorReverse(elements_at(op, low, mask ? ir_.CreateVectorReverse(mask) : nullptr));
}

/// Branches at the end of the scope that the builder is in. The scope's block stays the one that goes on, since positions at its end are
/// held elsewhere; what either side computes is not known after it.
Value* KernelEmitter::either(Value* condition, const std::function<Value*()>& then, const std::function<Value*()>& otherwise) {
  llvm::BasicBlock* rest = ir_.GetInsertBlock();
  const auto scope = std::find_if(scopes_.begin(), scopes_.end(), [&](const Scope& s) { return s.block == rest; });
  TENON_CHECK(scope != scopes_.end(), "a branch outside of a scope");
  auto& context = ir_.getContext();
  auto* before = llvm::BasicBlock::Create(context, "before", function_, rest);
  before->splice(before->end(), rest, rest->begin(), ir_.GetInsertPoint());
  const llvm::SmallVector<llvm::BasicBlock*, 2> predecessors(llvm::predecessors(rest));
  for (llvm::BasicBlock* block : predecessors) block->getTerminator()->replaceUsesOfWith(rest, before);
  llvm::BasicBlock* sides[] = {llvm::BasicBlock::Create(context, "run", function_, rest), llvm::BasicBlock::Create(context, "bent", function_, rest)};
  ir_.SetInsertPoint(before);
  ir_.CreateCondBr(condition, sides[0], sides[1]);
  Value* values[2];
  const Scope outside = *scope;
  for (int side : {0, 1}) {
    scope->block = sides[side];
    ir_.SetInsertPoint(sides[side]);
    values[side] = side == 0 ? then() : otherwise();
    sides[side] = ir_.GetInsertBlock();
    ir_.CreateBr(rest);
    *scope = outside;
  }
  ir_.SetInsertPoint(rest, rest->begin());
  llvm::PHINode* result = ir_.CreatePHI(values[0]->getType(), 2);
  for (int side : {0, 1}) result->addIncoming(values[side], sides[side]);
  if (auto* end = rest->getTerminator()) ir_.SetInsertPoint(end);
  else ir_.SetInsertPoint(rest);
  return result;
}

}  // namespace tenon::llvm_backend
