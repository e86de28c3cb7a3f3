// Loads and stores by class of access: one value for all lanes, contiguous, or one address a lane.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "core/base/error.h"
#include "vectors/kernel_emitter_impl.h"

namespace tenon::llvm_backend {

using llvm::Value;

namespace {

/// Elements so far apart are taken out of registers that have all that lies between them; a gather reads one after the other.
constexpr std::int64_t kMostSpaced = 4;

}  // namespace

Value* KernelEmitter::graph_symbol(SymbolId symbol) {
  Value* address = ir_.CreateConstInBoundsGEP1_64(ir_.getInt64Ty(), function_->getArg(1), symbol.value);
  return ir_.CreateLoad(ir_.getInt64Ty(), address);
}

Value* KernelEmitter::start_of_buffer(std::uint64_t number) {
  Value* slot = ir_.CreateConstInBoundsGEP1_64(ir_.getPtrTy(), function_->getArg(0), number);
  return ir_.CreateLoad(ir_.getPtrTy(), slot);
}

Lanes KernelEmitter::old_value(const Operation& op) {
  return load({.kind = OperationKind::load, .dtype = op.dtype, .payload = scatter_->buffer, .offset = scatter_->offset});
}

/// Whether the scatter has somewhere to write: where an index is out of range the checked one is 0, which an empty tensor does not have either.
/// Null where it always has, and for other buffers than its own.
Value* KernelEmitter::has_target(std::uint64_t number) {
  if (!scatter_ || number != scatter_->buffer) return nullptr;
  Value* all = nullptr;
  for (const Operation& op : kernel_.operations) {
    const bool may_be_empty = op.kind == OperationKind::checked && !op.masked && !(op.offset.is_constant() && op.offset.constant() > 0);
    if (!may_be_empty) continue;
    Value* some = ir_.CreateICmpSGT(scalar(op.offset), ir_.getInt64(0));
    all = all ? ir_.CreateAnd(all, some) : some;
  }
  return all;
}

/// Memory that takes the elements of all lanes and is read by nobody.
Value* KernelEmitter::somewhere_writable() {
  Scope& entry = scopes_[0];
  constexpr std::uint32_t kNowhere = 0xffff0001u;
  if (auto found = entry.symbols.find(kNowhere); found != entry.symbols.end()) return found->second;
  AtScope at(ir_, entry);
  auto* memory = ir_.CreateAlloca(llvm::ArrayType::get(ir_.getInt64Ty(), 64));
  memory->setAlignment(llvm::Align(64));
  return entry.symbols[kNowhere] = memory;
}

Value* KernelEmitter::element_address(std::uint64_t number, const Dim& offset) {
  Value* place = place_in_buffer(number, offset);
  Value* target = has_target(number);
  return target ? ir_.CreateSelect(target, place, somewhere_writable()) : place;
}

/// Zeroed memory that a load may go to when its mask is false everywhere.
Value* KernelEmitter::somewhere_readable() {
  llvm::Module& module = b_.module();
  if (auto* known = module.getNamedGlobal("tenon_zeros")) return known;
  auto* type = llvm::ArrayType::get(ir_.getInt64Ty(), 64);
  auto* zeros = new llvm::GlobalVariable(module, type, true, llvm::GlobalValue::InternalLinkage, llvm::ConstantAggregateZero::get(type), "tenon_zeros");
  zeros->setAlignment(llvm::Align(64));
  return zeros;
}

Lanes KernelEmitter::load(const Operation& op) {
  const bool varying_mask = op.masked && varies(op.args[0]);
  if (!varies(op.offset) && !varying_mask) return uniform_load(op);
  Value* mask = op.masked ? b_.widen(value(op.args[0])).value : nullptr;
  Affine affine;
  const bool known = lane_affine(op.offset, affine);
  if (known && affine.coefficient == Dim(1)) return contiguous_load(op, mask);
  return gathered_load(op, mask);
}

Lanes KernelEmitter::uniform_load(const Operation& op) {
  const DType storage = kernel_.buffers[op.payload].dtype;
  llvm::Type* type = b_.storage_type(storage);
  Value* address = element_address(op.payload, op.offset);
  Lanes mask;
  if (op.masked) {
    mask = value(op.args[0]);
    address = ir_.CreateSelect(mask.value, address, somewhere_readable());
  }
  const llvm::Align align(size_of(storage));
  const Lanes loaded = b_.from_storage(ir_.CreateAlignedLoad(type, address, align), storage, false);
  return op.masked ? b_.select(mask, loaded, value(op.args[1])) : loaded;
}

/// Asks memory for what is read some iterations later. Where little but arithmetic is between the loads of two rows of lanes, the
/// processor's own prefetching waits for it.
void KernelEmitter::fetch_ahead(Value* address, std::size_t bytes) {
  constexpr std::uint64_t kAhead = 2048, kLine = 64;
  for (std::uint64_t line = 0; line < bytes; line += kLine) {
    Value* later = ir_.CreateConstGEP1_64(ir_.getInt8Ty(), address, kAhead + line);
    ir_.CreateIntrinsic(llvm::Intrinsic::prefetch, {later->getType()}, {later, ir_.getInt32(0), ir_.getInt32(3), ir_.getInt32(1)});
  }
}

/// The elements from `address` on where the mask is true, the others from `otherwise`. Without AVX-512, bytes and half words are loaded one by
/// one under a mask: mostly all lanes have the same answer.
Value* KernelEmitter::masked_elements(DType storage, Value* address, Value* mask, Value* otherwise) {
  llvm::Type* type = b_.widened(b_.storage_type(storage));
  const llvm::Align align(size_of(storage));
  const auto masked = [&]() -> Value* { return ir_.CreateMaskedLoad(type, address, align, mask, otherwise); };
  if (size_of(storage) >= 4 || target_.has_mask_registers()) return masked();
  return either(ir_.CreateAndReduce(mask), [&]() -> Value* { return ir_.CreateAlignedLoad(type, address, align); }, [&] {
    return either(ir_.CreateOrReduce(mask), masked, [&] { return otherwise; });
  });
}

Lanes KernelEmitter::contiguous_load(const Operation& op, Value* mask) {
  const DType storage = kernel_.buffers[op.payload].dtype;
  llvm::Type* element = b_.storage_type(storage);
  llvm::Type* type = b_.widened(element);
  const llvm::Align align(size_of(storage));
  Value* address = element_address(op.payload, op.offset);
  if (op.masked && !varies(op.args[0])) {
    address = ir_.CreateSelect(value(op.args[0]).value, address, somewhere_readable());
    if (!tail_mask_) return b_.select(value(op.args[0]), b_.from_storage(ir_.CreateAlignedLoad(type, address, align), storage, true), widened(op.args[1]));
  }
  if (!op.masked && !tail_mask_) {
    if (streams()) fetch_ahead(address, b_.lanes() * size_of(storage));
    return b_.from_storage(ir_.CreateAlignedLoad(type, address, align), storage, true);
  }
  Value* all = tail_mask_ && op.masked ? ir_.CreateAnd(mask, tail_mask_) : tail_mask_ ? tail_mask_ : mask;
  Value* otherwise = llvm::Constant::getNullValue(type);
  // Lanes past the end repeat lane 0, so that they raise no floating-point flag that a real lane does not raise.
  if (!op.masked) otherwise = b_.splat(ir_.CreateAlignedLoad(element, address, align));
  Value* elements = masked_elements(storage, address, all, otherwise);
  if (op.masked && tail_mask_ && target_.quiet_comparisons) elements = ir_.CreateSelect(tail_mask_, elements, b_.splat(ir_.CreateExtractElement(elements, std::uint64_t{0})));
  const Lanes loaded = b_.from_storage(elements, storage, true);
  return op.masked ? b_.select({mask, DType::b8, true}, loaded, widened(op.args[1])) : loaded;
}

namespace {

/// An expression as one term that varies over lanes, and the rest; nothing when there are several such terms.
struct Varying {
  Dim rest;
  const ir::DimAtom* atom = nullptr;
};

template <class Varies>
std::optional<Varying> single_atom(const Dim& dim, Varies varies) {
  Varying result{Dim(dim.offset()), nullptr};
  for (const ir::DimTerm& term : dim.terms()) {
    if (!varies(term_of(term))) {
      result.rest = result.rest + term_of(term);
    } else if (result.atom || term.coefficient != 1 || term.atoms.size() != 1) {
      return {};
    } else {
      result.atom = &term.atoms[0];
    }
  }
  if (!result.atom) return {};
  return result;
}

bool is_clamp(const ir::DimAtom& atom) { return atom.op == ir::DimOp::min || atom.op == ir::DimOp::max; }

}  // namespace

/// True for min and max of a contiguous index with limits that are the same in all lanes: the index of a padding by edge values.
bool KernelEmitter::is_clamped(const Dim& index) {
  Affine affine;
  if (lane_affine(index, affine)) return affine.coefficient == Dim(1);
  const auto part = single_atom(index, [&](const Dim& d) { return varies(d); });
  if (!part || !is_clamp(*part->atom)) return false;
  const Dim &a = part->atom->operands[0], &b = part->atom->operands[1];
  return varies(a) != varies(b) && is_clamped(varies(a) ? a : b);
}

/// Loads at rest + index: contiguous where no limit applies, else the element at the limit.
Value* KernelEmitter::clamped_elements(std::uint64_t number, const Dim& rest, const Dim& index, Value* mask) {
  const DType storage = kernel_.buffers[number].dtype;
  llvm::Type* element = b_.storage_type(storage);
  const llvm::Align align(size_of(storage));
  Affine affine;
  if (lane_affine(index, affine)) {
    Value* address = element_address(number, rest + index);
    Value* all = mask && tail_mask_ ? ir_.CreateAnd(mask, tail_mask_) : mask ? mask : tail_mask_;
    llvm::Type* type = b_.widened(element);
    return all ? masked_elements(storage, address, all, llvm::Constant::getNullValue(type)) : ir_.CreateAlignedLoad(type, address, align);
  }
  const auto part = single_atom(index, [&](const Dim& d) { return varies(d); });
  const Dim base = rest + part->rest;
  const bool first_varies = varies(part->atom->operands[0]);
  const Dim& moving = part->atom->operands[first_varies ? 0 : 1];
  const Dim& limit = part->atom->operands[first_varies ? 1 : 0];
  const bool at_most = part->atom->op == ir::DimOp::min;
  Value* free = compare_lanes(at_most ? ops::Primitive::le : ops::Primitive::ge, moving - limit);
  if (!free) free = at_most ? ir_.CreateICmpSLE(vector(moving), b_.splat(scalar(limit))) : ir_.CreateICmpSGE(vector(moving), b_.splat(scalar(limit)));
  Value* edge = b_.splat(ir_.CreateAlignedLoad(element, element_address(number, base + limit), align));
  Value* inside = clamped_elements(number, base, moving, mask ? ir_.CreateAnd(mask, free) : free);
  return ir_.CreateSelect(free, inside, edge);
}

/// Whether the kernel reads the element so far beside that of the operation too, wherever it reads that.
bool KernelEmitter::reads_beside(const Operation& op, std::int64_t distance) const {
  for (OpId id = 0; id < kernel_.operations.size(); ++id) {
    const Operation& other = kernel_.operations[id];
    const bool same_mask = other.masked == op.masked && (!op.masked || other.args[0] == op.args[0]);
    if (needed_[id] && other.kind == OperationKind::load && other.payload == op.payload && same_mask && other.offset == op.offset + Dim(distance)) return true;
  }
  return false;
}

/// Each lane's answer for the two elements that it has side by side.
Value* KernelEmitter::doubled(Value* mask) {
  llvm::SmallVector<int, 128> twice;
  for (unsigned l = 0; l < b_.lanes(); ++l) twice.push_back(static_cast<int>(l)), twice.push_back(static_cast<int>(l));
  return ir_.CreateShuffleVector(mask, twice);
}

/// Every second element of memory that is read as a whole: the parts of complex numbers.
Value* KernelEmitter::parted_elements(const Operation& op, Value* mask, bool second) {
  const DType storage = kernel_.buffers[op.payload].dtype;
  auto* pairs = llvm::FixedVectorType::get(b_.storage_type(storage), 2 * b_.lanes());
  const llvm::Align align(size_of(storage));
  Value* address = element_address(op.payload, second ? op.offset - Dim(1) : op.offset);
  Value* read = mask && tail_mask_ ? ir_.CreateAnd(mask, tail_mask_) : mask ? mask : tail_mask_;
  Value* loaded = read ? static_cast<Value*>(ir_.CreateMaskedLoad(pairs, address, align, doubled(read), llvm::Constant::getNullValue(pairs))) : ir_.CreateAlignedLoad(pairs, address, align);
  llvm::SmallVector<int, 128> own;
  for (unsigned l = 0; l < b_.lanes(); ++l) own.push_back(static_cast<int>(2 * l + second));
  Value* elements = ir_.CreateShuffleVector(loaded, own);
  if (!tail_mask_) return elements;
  return ir_.CreateSelect(tail_mask_, elements, b_.splat(ir_.CreateExtractElement(elements, std::uint64_t{0})));
}

/// Every second element: a contiguous load of which only those are read, and then put together.
Value* KernelEmitter::paired_elements(const Operation& op, Value* mask) {
  if (const bool first = reads_beside(op, 1); first || reads_beside(op, -1)) return parted_elements(op, mask, !first);
  const DType storage = kernel_.buffers[op.payload].dtype;
  auto* pairs = llvm::FixedVectorType::get(b_.storage_type(storage), 2 * b_.lanes());
  Value* read = mask && tail_mask_ ? ir_.CreateAnd(mask, tail_mask_) : mask ? mask : tail_mask_;
  if (!read) read = llvm::Constant::getAllOnesValue(b_.widened(ir_.getInt1Ty()));
  llvm::SmallVector<int, 128> spread, even;
  for (unsigned l = 0; l < b_.lanes(); ++l) {
    spread.push_back(static_cast<int>(l)), spread.push_back(static_cast<int>(b_.lanes()));
    even.push_back(static_cast<int>(2 * l));
  }
  Value* mask_of_pairs = ir_.CreateShuffleVector(read, llvm::Constant::getNullValue(read->getType()), spread);
  Value* address = element_address(op.payload, op.offset);
  Value* loaded = ir_.CreateMaskedLoad(pairs, address, llvm::Align(size_of(storage)), mask_of_pairs, llvm::Constant::getNullValue(pairs));
  Value* elements = ir_.CreateShuffleVector(loaded, even);
  if (!tail_mask_) return elements;
  return ir_.CreateSelect(tail_mask_, elements, b_.splat(ir_.CreateExtractElement(elements, std::uint64_t{0})));
}

/// Every third element, or so: all of their memory in registers, of which the last one ends with the last element.
Value* KernelEmitter::spaced_elements(const Operation& op, unsigned distance) {
  const DType storage = kernel_.buffers[op.payload].dtype;
  llvm::Type* element = b_.storage_type(storage);
  const unsigned count = std::min(b_.lanes(), target_.lanes() * 4 / static_cast<unsigned>(size_of(storage)));
  auto* part = llvm::FixedVectorType::get(element, count);
  Value* address = element_address(op.payload, op.offset);
  llvm::SmallVector<Value*, 8> groups;
  for (unsigned first = 0; first < b_.lanes(); first += count) {
    const auto loaded = [&](unsigned start) { return ir_.CreateAlignedLoad(part, ir_.CreateConstGEP1_64(element, address, first * distance + start), llvm::Align(size_of(storage))); };
    Value* group = loaded(0);
    for (unsigned k = 1; k < distance; ++k) {
      const unsigned start = k + 1 < distance ? k * count : distance * (count - 1) + 1 - count;
      llvm::SmallVector<int, 64> places;
      for (unsigned l = 0; l < count; ++l) {
        const unsigned place = l * distance, so_far = k == 1 ? place : l;
        places.push_back(static_cast<int>(place < k * count ? so_far : place < (k + 1) * count ? count + place - start : 0));
      }
      group = ir_.CreateShuffleVector(group, loaded(start), places);
    }
    groups.push_back(group);
  }
  return llvm::concatenateVectors(ir_, groups);
}

Lanes KernelEmitter::gathered_load(const Operation& op, Value* mask) {
  const DType storage = kernel_.buffers[op.payload].dtype;
  if (!op.masked && is_clamped(op.offset)) return b_.from_storage(clamped_elements(op.payload, Dim(0), op.offset, nullptr), storage, true);
  Affine affine;
  const bool wide = size_of(storage) >= 4 || (size_of(storage) == 2 && (reads_beside(op, 1) || reads_beside(op, -1)));
  const bool pairs = wide && lane_affine(op.offset, affine) && affine.coefficient == Dim(2);
  const bool evenly = !mask && !tail_mask_ && lane_affine(op.offset, affine) && affine.coefficient.is_constant();
  const std::int64_t distance = evenly ? affine.coefficient.constant() : 0;
  const bool spaced = distance >= 2 && distance <= kMostSpaced;
  Value* elements = pairs ? paired_elements(op, mask) : spaced ? spaced_elements(op, static_cast<unsigned>(distance)) : run_or_gather(op, mask);
  const Lanes loaded = b_.from_storage(elements, storage, true);
  return op.masked ? b_.select({mask, DType::b8, true}, loaded, widened(op.args[1])) : loaded;
}

Value* KernelEmitter::gathered_elements(const Operation& op, Value* mask) {
  const DType storage = kernel_.buffers[op.payload].dtype;
  llvm::Type* element = b_.storage_type(storage);
  Value* addresses = nullptr;
  Affine affine;
  constexpr std::int64_t kNear = std::int64_t{1} << 24;
  if (lane_affine(op.offset, affine) && affine.coefficient.is_constant() && std::abs(affine.coefficient.constant()) < kNear) {
    Value* first = element_address(op.payload, op.offset);
    Value* steps = ir_.CreateMul(lane_numbers(ir_.getInt32Ty()), b_.splat(ir_.getInt32(static_cast<std::uint32_t>(affine.coefficient.constant()))));
    addresses = ir_.CreateGEP(element, first, ir_.CreateSExt(steps, b_.widened(ir_.getInt64Ty())));
  } else {
    Value* index = vector(op.offset);
    if (kernel_.buffers[op.payload].is_narrow()) {
      Value* narrow = ir_.CreateTrunc(index, b_.widened(ir_.getInt32Ty()));
      index = ir_.CreateSExt(narrow, b_.widened(ir_.getInt64Ty()));
    }
    addresses = ir_.CreateGEP(element, buffer(op.payload), index);
  }
  llvm::Type* type = b_.widened(element);
  Value* all = mask ? mask : llvm::Constant::getAllOnesValue(b_.widened(ir_.getInt1Ty()));
  if (Value* target = has_target(op.payload)) all = ir_.CreateAnd(all, b_.splat(target));
  return ir_.CreateMaskedGather(type, addresses, llvm::Align(size_of(storage)), all, llvm::Constant::getNullValue(type));
}

/// Where an index is out of range, writes it to the fault record; gives 0 there, so that no stray memory is read.
Lanes KernelEmitter::checked(const Operation& op) {
  const Lanes index = value(op.args[0]);
  Value* size = scalar(op.offset);
  Value* limit = index.varying ? b_.splat(size) : size;
  Value* inside = ir_.CreateICmpULT(index.value, limit);
  if (op.masked) {
    Lanes mask = value(op.args[1]);
    if (index.varying) mask = b_.widen(mask);
    Lanes both = {inside, DType::b8, index.varying};
    if (mask.varying && !both.varying) both = b_.widen(both);
    inside = ir_.CreateOr(both.value, ir_.CreateNot(mask.value));
  }
  const Lanes wide = inside->getType()->isVectorTy() ? b_.widen(index) : index;
  Value* all_inside = wide.varying ? ir_.CreateAndReduce(inside) : inside;
  const auto in_range = [&] {
    Value* known = ir_.CreateICmpULT(wide.value, wide.varying ? b_.splat(size) : size);
    return ir_.CreateSelect(known, wide.value, llvm::Constant::getNullValue(wide.value->getType()));
  };
  Value* result = either(all_inside, [&] { return op.masked ? in_range() : wide.value; }, [&] {
    report_fault(op, inside, wide, size);
    return in_range();
  });
  return {result, DType::i64, wide.varying};
}

void KernelEmitter::report_fault(const Operation& check, Value* inside, const Lanes& index, Value* size) {
  Value* bad = ir_.CreateSelect(inside, llvm::Constant::getNullValue(index.value->getType()), index.value);
  auto* record = llvm::StructType::get(ir_.getInt32Ty(), ir_.getInt32Ty(), ir_.getInt64Ty(), ir_.getInt64Ty());
  Value* to = function_->getArg(4);
  ir_.CreateStore(ir_.getInt32(1), ir_.CreateStructGEP(record, to, 0));
  ir_.CreateStore(ir_.getInt32(static_cast<std::uint32_t>(check.payload)), ir_.CreateStructGEP(record, to, 1));
  ir_.CreateStore(index.varying ? ir_.CreateIntMaxReduce(bad, false) : bad, ir_.CreateStructGEP(record, to, 2));
  ir_.CreateStore(size, ir_.CreateStructGEP(record, to, 3));
}

/// True where a large output is written whole cache lines at a time: lanes start at multiples of a line in every row.
bool KernelEmitter::streams_to(const Store& s) {
  Affine affine;
  if (kernel_.buffers[s.buffer].row || !streams() || !lane_affine(s.offset, affine) || !(affine.coefficient == Dim(1))) return false;
  const auto line = static_cast<std::int64_t>(64 / size_of(kernel_.buffers[s.buffer].dtype));
  bool aligned = affine.rest.offset() % line == 0;
  for (const ir::DimTerm& term : affine.rest.terms()) aligned = aligned && term.coefficient % line == 0;
  return aligned;
}

namespace {

/// Whether some loop around all that is stored has no rounds: a tensor without elements, whose strides are 0.
bool stores_nothing(const codegen::Kernel& kernel) {
  const auto has_no_rounds = [](const codegen::Loop& loop) { return loop.extent == Dim(0); };
  return std::ranges::any_of(kernel.outer, has_no_rounds) || (schedule_of(kernel).lanes_inside && std::ranges::any_of(kernel.inner, has_no_rounds));
}

}  // namespace

/// Whether two stores write elements that alternate in memory: the parts of complex numbers.
bool KernelEmitter::alternate(const Store& s, const Store& next) {
  Affine affine;
  return !kernel_.scatter && s.buffer == next.buffer && next.offset == s.offset + Dim(1) && size_of(kernel_.buffers[s.buffer].dtype) >= 2 &&
         varies(s.offset) && lane_affine(s.offset, affine) && affine.coefficient == Dim(2);
}

void KernelEmitter::store_pairs(const Store& s, const Store& next) {
  const DType storage = kernel_.buffers[s.buffer].dtype;
  const llvm::Align align(size_of(storage));
  const auto bits = [&](const Store& each) { return b_.to_storage(widened(each.value), storage); };
  Value* first = bits(s);
  llvm::SmallVector<int, 128> by_turns;
  for (unsigned l = 0; l < b_.lanes(); ++l) by_turns.push_back(static_cast<int>(l)), by_turns.push_back(static_cast<int>(l + b_.lanes()));
  Value* pairs = ir_.CreateShuffleVector(first, bits(next), by_turns);
  Value* address = element_address(s.buffer, s.offset);
  if (tail_mask_) ir_.CreateMaskedStore(pairs, address, align, doubled(tail_mask_));
  else ir_.CreateAlignedStore(pairs, address, align);
}

void KernelEmitter::store(const Store& s) {
  const DType storage = kernel_.buffers[s.buffer].dtype;
  const llvm::Align align(size_of(storage));
  Lanes v = value(s.value);
  if (!varies(s.offset)) {
    if (v.varying && stores_nothing(kernel_)) return;
    TENON_CHECK(!v.varying, "lanes are stored to one place");
    ir_.CreateAlignedStore(b_.to_storage(v, storage), element_address(s.buffer, s.offset), align);
    return;
  }
  if (!v.varying) v = widened(s.value);
  Value* bits = b_.to_storage(v, storage);
  Affine affine;
  if (lane_affine(s.offset, affine) && affine.coefficient == Dim(1)) {
    Value* address = element_address(s.buffer, s.offset);
    if (tail_mask_) {
      ir_.CreateMaskedStore(bits, address, align, tail_mask_);
      return;
    }
    const bool stream = streams_to(s);
    const auto bytes = b_.lanes() * size_of(storage);
    auto* written = ir_.CreateAlignedStore(bits, address, stream ? llvm::Align(std::min<std::size_t>(bytes, 64)) : align);
    if (stream) {
      auto* one = llvm::ConstantAsMetadata::get(ir_.getInt32(1));
      written->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(ir_.getContext(), one));
    }
    return;
  }
  llvm::Type* element = b_.storage_type(storage);
  Value* addresses = ir_.CreateGEP(element, buffer(s.buffer), vector(s.offset));
  Value* mask = tail_mask_ ? tail_mask_ : llvm::Constant::getAllOnesValue(b_.widened(ir_.getInt1Ty()));
  if (Value* target = has_target(s.buffer)) mask = ir_.CreateAnd(mask, b_.splat(target));
  ir_.CreateMaskedScatter(bits, addresses, align, mask);
}

}  // namespace tenon::llvm_backend
