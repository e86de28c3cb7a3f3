// Reductions over inner loops that a team of threads shares: each thread its points, then the threads of a warp, then the warps of a block. In
// an order that the shape decides alone.
#include "lower/block_emitter.h"

namespace tenon::cuda {

using codegen::Stage;
using llvm::Value;

BlockEmitter::Carried BlockEmitter::reduce_over(const Stage& stage, std::size_t number, Value* low, Value* high, unsigned lanes, Carried carried) {
  const CarriedBody add = [&](Value*, Carried sums) { return combined(stage, sums, elements(stage)); };
  if (number + 1 == kernel_.inner.size()) return shared_loop(low, high, lanes, std::move(carried), add);
  const codegen::Loop& l = kernel_.inner[number];
  auto values = loop(ir_.getInt64(0), scalar(l.extent), 1, false, l.variable, std::move(carried),
                     [&](Value*, Carried sums) { return reduce_over(stage, number + 1, low, high, lanes, std::move(sums)); });
  values.pop_back();
  return values;
}

void BlockEmitter::reduce(const Stage& stage) {
  Value* extent = scalar(kernel_.inner.back().extent);
  Carried values;
  if (schedule_.kind == Schedule::Kind::columns) {
    values = initial(stage, lane_.has_value(), schedule_.lanes);
    if (keeps_rows()) values = kept_loop(std::move(values), [&](Value*, Carried sums) { return combined(stage, sums, elements(stage)); });
    else values = reduce_over(stage, 0, ir_.getInt64(0), extent, 1, std::move(values));
    return finish_reductions(stage, schedule_.team == 1 ? values : of_column(stage, values));
  }
  Value* end = whole_vectors();
  if (keeps_rows()) {
    on_lanes(schedule_.lanes);
    values = kept_loop(initial(stage, schedule_.lanes > 1, schedule_.lanes), [&](Value*, Carried sums) { return combined(stage, sums, elements(stage)); });
    if (schedule_.lanes > 1) values = narrowed(stage, std::move(values), schedule_.lanes, 1);
    on_lanes(1);
    values = of_warp(stage, std::move(values));
    return finish_reductions(stage, schedule_.team == kBlock ? of_block(stage, values) : values);
  }
  if (has_vectors()) {
    on_lanes(schedule_.lanes);
    values = reduce_over(stage, 0, ir_.getInt64(0), end, schedule_.lanes, initial(stage, true, schedule_.lanes));
    values = narrowed(stage, std::move(values), schedule_.lanes, 1);
  }
  on_lanes(1);
  if (values.empty()) values = initial(stage, false, 1);
  if (has_tail()) values = reduce_over(stage, 0, end, extent, 1, std::move(values));
  values = of_warp(stage, std::move(values));
  if (schedule_.team == kBlock) values = of_block(stage, values);
  finish_reductions(stage, values);
}

Value* BlockEmitter::as_bits(Value* value, unsigned bits) {
  const unsigned own = value->getType()->getScalarSizeInBits();
  Value* whole = value->getType()->isIntegerTy() ? value : ir_.CreateBitCast(value, ir_.getIntNTy(own));
  return ir_.CreateZExt(whole, ir_.getIntNTy(bits));
}

Value* BlockEmitter::from_bits(Value* bits, llvm::Type* type) {
  Value* whole = ir_.CreateTrunc(bits, ir_.getIntNTy(type->getScalarSizeInBits()));
  return type->isIntegerTy() ? whole : ir_.CreateBitCast(whole, type);
}

Value* BlockEmitter::by_words(Value* value, const std::function<Value*(Value*)>& send) {
  llvm::Type* type = value->getType();
  if (type->getScalarSizeInBits() <= 32) return from_bits(send(as_bits(value, 32)), type);
  Value* bits = as_bits(value, 64);
  const auto half = [&](unsigned shift) { return ir_.CreateZExt(send(ir_.CreateTrunc(ir_.CreateLShr(bits, shift), ir_.getInt32Ty())), ir_.getInt64Ty()); };
  Value* low = half(0);
  return from_bits(ir_.CreateOr(ir_.CreateShl(half(32), 32), low), type);
}

BlockEmitter::Carried BlockEmitter::of_warp(const Stage& stage, Carried values) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    Carried others;
    for (Value* v : values) others.push_back(by_words(v, [&](Value* bits) { return isa_.from_further(b_, bits, distance); }));
    values = combined(stage, values, others);
  }
  for (Value*& v : values) v = by_words(v, [&](Value* bits) { return isa_.from_first(b_, bits); });
  return values;
}

/// Each thread leaves its values in memory, lane by lane; then those of half of the team take in those of the other half, until one has all.
BlockEmitter::Carried BlockEmitter::of_column(const Stage& stage, const Carried& values) {
  const unsigned lanes = schedule_.lanes, side_by_side = kBlock / schedule_.team;
  Value* memory = isa_.shared_memory(b_, std::size_t{kBlock} * lanes * values.size());
  Value* column = ir_.CreateURem(ir_.CreateZExt(isa_.thread_number(b_), ir_.getInt64Ty()), ir_.getInt64(side_by_side));
  const auto place = [&](Value* row, std::size_t number) {
    Value* thread = ir_.CreateAdd(ir_.CreateMul(row, ir_.getInt64(side_by_side)), column);
    return ir_.CreateGEP(ir_.getInt64Ty(), memory, ir_.CreateAdd(thread, ir_.getInt64(number * kBlock)));
  };
  const auto store = [&](Value* row, const Carried& all) {
    for (std::size_t i = 0; i < all.size(); ++i)
      for (unsigned lane = 0; lane < lanes; ++lane) ir_.CreateStore(as_bits(lanes == 1 ? all[i] : ir_.CreateExtractElement(all[i], lane), 64), place(row, i * lanes + lane));
  };
  const auto load = [&](Value* row) {
    Carried all;
    for (std::size_t i = 0; i < values.size(); ++i) {
      llvm::Type* type = values[i]->getType();
      Value* vector = lanes == 1 ? nullptr : llvm::PoisonValue::get(type);
      for (unsigned lane = 0; lane < lanes; ++lane) {
        Value* one = from_bits(ir_.CreateLoad(ir_.getInt64Ty(), place(row, i * lanes + lane)), type->getScalarType());
        vector = vector ? ir_.CreateInsertElement(vector, one, lane) : one;
      }
      all.push_back(vector);
    }
    return all;
  };
  if (has_shared_) isa_.meet(b_);  // all have read what a stage before left there
  has_shared_ = true;
  store(thread_, values);
  for (unsigned half = schedule_.team / 2; half > 0; half /= 2) {
    isa_.meet(b_);
    where(ir_.CreateICmpULT(thread_, ir_.getInt64(half)), [&] { store(thread_, combined(stage, load(thread_), load(ir_.CreateAdd(thread_, ir_.getInt64(half))))); });
  }
  isa_.meet(b_);
  return load(ir_.getInt64(0));
}

/// Each warp leaves its values in memory, and each thread combines those of all warps.
BlockEmitter::Carried BlockEmitter::of_block(const Stage& stage, const Carried& values) {
  constexpr unsigned kWarps = kBlock / kWarp;
  Value* memory = isa_.shared_memory(b_, kWarps * values.size());
  const auto place = [&](Value* warp, std::size_t value) {
    Value* at = ir_.CreateAdd(ir_.CreateMul(warp, ir_.getInt64(values.size())), ir_.getInt64(value));
    return ir_.CreateGEP(ir_.getInt64Ty(), memory, at);
  };
  if (has_shared_) isa_.meet(b_);  // all have read what a stage before left there
  has_shared_ = true;
  Value* warp = ir_.CreateUDiv(thread_, ir_.getInt64(kWarp));
  where(ir_.CreateICmpEQ(ir_.CreateURem(thread_, ir_.getInt64(kWarp)), ir_.getInt64(0)), [&] {
    for (std::size_t i = 0; i < values.size(); ++i) ir_.CreateStore(as_bits(values[i], 64), place(warp, i));
  });
  isa_.meet(b_);
  Carried total;
  for (unsigned w = 0; w < kWarps; ++w) {
    Carried part;
    for (std::size_t i = 0; i < values.size(); ++i) part.push_back(from_bits(ir_.CreateLoad(ir_.getInt64Ty(), place(ir_.getInt64(w), i)), values[i]->getType()));
    total = w == 0 ? part : combined(stage, total, part);
  }
  return total;
}

}  // namespace tenon::cuda
