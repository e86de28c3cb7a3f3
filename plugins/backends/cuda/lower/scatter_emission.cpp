// Scatters whose points may run in any order: each point is combined with what its target has by then, again where somebody else was quicker. Points of which
// no two meet store as others do.
#include <algorithm>

#include "core/base/error.h"
#include "lower/block_emitter.h"

namespace tenon::cuda {

using codegen::Operation;
using codegen::OperationKind;
using llvm::Value;

namespace {

constexpr auto kOrdering = llvm::AtomicOrdering::Monotonic;

}  // namespace

codegen::Lanes BlockEmitter::old_value(const Operation&) {
  TENON_CHECK(old_.value, "what a target has is read outside of a scatter");
  return old_;
}

/// Computes what needs nothing of the target before the first look at it.
void BlockEmitter::compute_scattered() {
  const auto reads_target = codegen::dependents(kernel_.operations, [](const Operation& op) { return op.kind == OperationKind::old_value; });
  for (codegen::OpId id = 0; id < kernel_.operations.size(); ++id)
    for (const codegen::OpId argument : kernel_.operations[id].args)
      if (reads_target[id] && argument != codegen::kNoOp && !reads_target[argument]) value(argument);
}

/// An addition that memory does itself. Null where it does not.
Value* BlockEmitter::added_in_memory(const codegen::Store& s) {
  const Operation& sum = kernel_.operations[s.value];
  const DType storage = kernel_.buffers[s.buffer].dtype;
  if (sum.primitive != ops::Primitive::add || sum.dtype != storage || size_of(storage) < 4) return nullptr;
  const bool second = kernel_.operations[sum.args[0]].kind == OperationKind::old_value;
  Value* added = value(sum.args[second ? 1 : 0]).value;
  return ir_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, place_in_buffer(s.buffer, s.offset), added, llvm::Align(size_of(storage)), kOrdering);
}

/// What is smaller than a word is exchanged within the word around it.
void BlockEmitter::scatter(const codegen::Store& s) {
  const DType storage = kernel_.buffers[s.buffer].dtype;
  llvm::Type* type = b_.storage_type(storage);
  if (has_points_apart(kernel_)) {
    old_ = b_.from_storage(element_of(type, place_in_buffer(s.buffer, s.offset), storage, nullptr), storage, false);
    return store(s);
  }
  const auto bits = static_cast<unsigned>(8 * size_of(storage));
  llvm::IntegerType* word = ir_.getIntNTy(std::max(bits, 32u));
  const llvm::Align alignment(word->getBitWidth() / 8);
  compute_scattered();
  if (added_in_memory(s)) return;
  Value *address = place_in_buffer(s.buffer, s.offset), *shift = nullptr;
  if (bits < word->getBitWidth()) {
    Value* byte = ir_.CreateAnd(ir_.CreatePtrToInt(address, ir_.getInt64Ty()), ir_.getInt64(alignment.value() - 1));
    address = ir_.CreateGEP(ir_.getInt8Ty(), address, ir_.CreateNeg(byte));
    shift = ir_.CreateTrunc(ir_.CreateShl(byte, 3), word);
  }
  Value* first = ir_.CreateAlignedLoad(word, address, alignment);
  auto* before = ir_.GetInsertBlock();
  auto* again = llvm::BasicBlock::Create(ir_.getContext(), "again", function_);
  auto* after = llvm::BasicBlock::Create(ir_.getContext(), "after", function_);
  ir_.CreateBr(again);
  scopes_.emplace_back();
  enter(again);
  auto* found = ir_.CreatePHI(word, 2);
  found->addIncoming(first, before);
  old_ = b_.from_storage(from_bits(shift ? ir_.CreateLShr(found, shift) : found, type), storage, false);
  Value* next = as_bits(b_.to_storage(value(s.value), storage), word->getBitWidth());
  if (shift) {
    Value* own = ir_.CreateShl(llvm::ConstantInt::get(word, (std::uint64_t{1} << bits) - 1), shift);
    next = ir_.CreateOr(ir_.CreateAnd(found, ir_.CreateNot(own)), ir_.CreateShl(next, shift));
  }
  Value* exchanged = ir_.CreateAtomicCmpXchg(address, found, next, alignment, kOrdering, kOrdering);
  found->addIncoming(ir_.CreateExtractValue(exchanged, 0), ir_.GetInsertBlock());
  ir_.CreateCondBr(ir_.CreateExtractValue(exchanged, 1), after, again);
  scopes_.pop_back();
  enter(after);
}

}  // namespace tenon::cuda
