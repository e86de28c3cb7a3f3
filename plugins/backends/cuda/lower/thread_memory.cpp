// Loads and stores of a thread: a vector where it is contiguous and aligned, else an element a lane. No gathers through masks: what a mask
// hides is read from zeros instead.
#include <algorithm>

#include "core/base/error.h"
#include "lower/block_emitter.h"

namespace tenon::cuda {

using codegen::Operation;
using llvm::Value;

Value* BlockEmitter::graph_symbol(SymbolId symbol) {
  const auto found = std::ranges::find(schedule_.symbols, symbol);
  TENON_CHECK(found != schedule_.symbols.end(), "a kernel needs a size that it is not given");
  return isa_.symbol(b_, *function_, run_ ? 1 : memory_buffers(kernel_), static_cast<std::size_t>(found - schedule_.symbols.begin()));
}

Value* BlockEmitter::start_of_buffer(std::uint64_t number) {
  return run_ ? ir_.CreateIntToPtr(of_run(number), llvm::PointerType::get(ir_.getContext(), isa_.global_memory())) : isa_.buffer(b_, *function_, number);
}

Value* BlockEmitter::of_run(std::uint64_t number) {
  return isa_.in_table(b_, *function_, ir_.CreateAdd(ir_.CreateMul(run_, ir_.getInt64(memory_buffers(kernel_))), ir_.getInt64(number)));
}

Value* BlockEmitter::zeros() {
  llvm::Module& module = b_.module();
  if (auto* known = module.getNamedGlobal("tenon_zeros")) return known;
  llvm::Type* type = llvm::ArrayType::get(ir_.getInt8Ty(), kVectorBytes);
  auto* made = new llvm::GlobalVariable(module, type, true, llvm::GlobalValue::InternalLinkage, llvm::Constant::getNullValue(type), "tenon_zeros", nullptr,
                                        llvm::GlobalValue::NotThreadLocal, isa_.global_memory());
  made->setAlignment(llvm::Align(kVectorBytes));
  return made;
}

/// Vectors start at multiples of as many elements: so does the buffer, and so does each row of the last loop.
bool BlockEmitter::is_vector(const Dim& place) {
  codegen::Affine along;
  return lane_ && lane_affine(place, along) && is_aligned(place, *lane_, b_.lanes());
}

Value* BlockEmitter::element_of(llvm::Type* type, Value* address, DType storage, Value* mask) {
  if (mask) address = ir_.CreateSelect(mask, address, zeros());
  return ir_.CreateAlignedLoad(type, address, llvm::Align(size_of(storage)));
}

Value* BlockEmitter::address_of_lane(std::uint64_t number, const Dim& place, std::uint64_t lane) {
  llvm::Type* type = b_.storage_type(kernel_.buffers[number].dtype);
  codegen::Affine along;
  if (!lane_affine(place, along)) return ir_.CreateGEP(type, buffer(number), ir_.CreateExtractElement(vector(place), lane));
  Value* first = place_in_buffer(number, place);
  return ir_.CreateGEP(type, first, scalar(along.coefficient * Dim(static_cast<std::int64_t>(lane))));
}

codegen::Lanes BlockEmitter::load(const Operation& op) {
  const DType storage = kernel_.buffers[op.payload].dtype;
  llvm::Type* type = b_.storage_type(storage);
  if (kernel_.buffers[op.payload].row) return b_.from_storage(kept_.at({op.payload, pass_}), storage, lane_.has_value());
  if (at_)
    if (const auto found = std::ranges::find(schedule_.transposed, static_cast<codegen::OpId>(&op - kernel_.operations.data())); found != schedule_.transposed.end()) {
      Value* address = in_tile(static_cast<std::size_t>(found - schedule_.transposed.begin()), at_->row, at_->column);
      return b_.from_storage(ir_.CreateLoad(type, address), storage, false);
    }
  const bool by_lane = varies(op.offset) || (op.masked && varies(op.args[0]));
  Lanes mask;
  if (op.masked) mask = by_lane ? b_.widen(value(op.args[0])) : value(op.args[0]);
  Lanes loaded;
  if (schedule_.is_number(op.payload)) {
    loaded = b_.from_storage(from_bits(run_ ? of_run(op.payload) : isa_.number(b_, *function_, op.payload), type), storage, false);
  } else if (!by_lane) {
    loaded = b_.from_storage(element_of(type, place_in_buffer(op.payload, op.offset), storage, mask.value), storage, false);
  } else if (is_vector(op.offset) && !(op.masked && varies(op.args[0]))) {
    Value* address = place_in_buffer(op.payload, op.offset);
    if (op.masked) address = ir_.CreateSelect(value(op.args[0]).value, address, zeros());
    loaded = b_.from_storage(ir_.CreateAlignedLoad(b_.widened(type), address, llvm::Align(b_.lanes() * size_of(storage))), storage, true);
  } else {
    Value* all = llvm::PoisonValue::get(b_.widened(type));
    for (std::uint64_t lane = 0; lane < b_.lanes(); ++lane) {
      Value* here = op.masked ? ir_.CreateExtractElement(mask.value, lane) : nullptr;
      Value* address = varies(op.offset) ? address_of_lane(op.payload, op.offset, lane) : place_in_buffer(op.payload, op.offset);
      all = ir_.CreateInsertElement(all, element_of(type, address, storage, here), lane);
    }
    loaded = b_.from_storage(all, storage, true);
  }
  return op.masked ? b_.select(mask, loaded, by_lane ? widened(op.args[1]) : value(op.args[1])) : loaded;
}

/// An index out of range ends the program's use of the card, as an assertion of eager's kernels does. Gives 0 there.
codegen::Lanes BlockEmitter::checked(const Operation& op) {
  Lanes index = value(op.args[0]);
  Lanes mask = op.masked ? value(op.args[1]) : Lanes();
  if (op.masked && mask.varying) index = b_.widen(index);
  if (op.masked && index.varying) mask = b_.widen(mask);
  Value* size = scalar(op.offset);
  Value* inside = ir_.CreateICmpULT(index.value, index.varying ? b_.splat(size) : size);
  Value* outside = ir_.CreateNot(inside);
  if (op.masked) outside = ir_.CreateAnd(outside, mask.value);
  isa_.fail_where(b_, index.varying ? ir_.CreateOrReduce(outside) : outside);
  return {ir_.CreateSelect(inside, index.value, llvm::Constant::getNullValue(index.value->getType())), DType::i64, index.varying};
}

void BlockEmitter::store(const codegen::Store& s) {
  const DType storage = kernel_.buffers[s.buffer].dtype;
  Lanes v = value(s.value);
  if (kernel_.buffers[s.buffer].row) {
    if (lane_ && !v.varying) v = widened(s.value);
    kept_[{s.buffer, pass_}] = b_.to_storage(v, storage);
    return;
  }
  if (!varies(s.offset)) {
    TENON_CHECK(!v.varying, "lanes are stored to one place");
    ir_.CreateAlignedStore(b_.to_storage(v, storage), place_in_buffer(s.buffer, s.offset), llvm::Align(size_of(storage)));
    return;
  }
  if (!v.varying) v = widened(s.value);
  Value* bits = b_.to_storage(v, storage);
  if (is_vector(s.offset)) {
    ir_.CreateAlignedStore(bits, place_in_buffer(s.buffer, s.offset), llvm::Align(b_.lanes() * size_of(storage)));
    return;
  }
  for (std::uint64_t lane = 0; lane < b_.lanes(); ++lane)
    ir_.CreateAlignedStore(ir_.CreateExtractElement(bits, lane), address_of_lane(s.buffer, s.offset, lane), llvm::Align(size_of(storage)));
}

}  // namespace tenon::cuda
