// What a block reads of an operand for a step of the sum: copies that go on while it computes, or values that threads compute.
#include <algorithm>

#include "products/product_emitter.h"

namespace tenon::cuda {

using codegen::Lanes;
using codegen::Loop;
using codegen::Operation;
using llvm::Value;

void ProductEmitter::load_step(Value* stage, Value* step) {
  Value* step32 = ir_.CreateTrunc(step, ir_.getInt32Ty());
  for (const Side& side : sides_) within([&] { load_operand(side, stage, step32); });
}

/// The last place of the vector where it is behind the end: what comes of it belongs to no result.
Value* ProductEmitter::clamped(Value* place, std::int64_t size, unsigned lanes) {
  return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, place, number(static_cast<unsigned>(size) - lanes));
}

/// What a thread reads is computed for the operand's own lanes: what depends on its place in rows once a step, in the scope that is open.
void ProductEmitter::on_operand(const Side& side) {
  const TileOperand& operand = side.operand;
  for (const Loop& l : operand.loops) symbol_depth_[l.variable.value] = depth() + (operand.along_sum ? 1 : 0);
  for (const Loop& l : side.summed) symbol_depth_[l.variable.value] = depth() + (operand.along_sum ? 0 : 1);
  op_depth_.clear();
  op_varies_.clear();
  b_.set_lanes(operand.lanes);
  lane_ = operand.lanes > 1 ? std::optional((operand.along_sum ? side.summed : std::span(operand.loops)).back().variable) : std::nullopt;
}

/// Threads of a row stand side by side in it, and have the same place in each of the rows that they read.
void ProductEmitter::load_operand(const Side& side, Value* stage, Value* step) {
  const TileOperand& operand = side.operand;
  const ProductTile& product = side.product;
  on_operand(side);
  const unsigned sum_of_block = product.block_depth(), across = product.row_elements(operand, side.extent) / operand.lanes, down = kBlock / across;
  const unsigned rows = operand.along_sum ? side.extent : sum_of_block;
  const bool even = product.depth % sum_of_block == 0;
  const auto element = static_cast<unsigned>(size_of(product.dtype));
  Value *along = ir_.CreateMul(ir_.CreateURem(thread32_, number(across)), number(operand.lanes)), *first = ir_.CreateUDiv(thread32_, number(across));
  Value* sum = ir_.CreateMul(step, number(sum_of_block));
  Value* lies = ir_.CreateMul(along, number(element));
  if (operand.swizzled) lies = ir_.CreateXor(lies, ir_.CreateMul(ir_.CreateURem(first, number(8)), number(kVectorBytes)));  // `down` is a multiple of 8
  Value* to = at_bytes(stage, ir_.CreateAdd(number(side.start), ir_.CreateAdd(ir_.CreateMul(first, number(side.row_bytes())), lies)));
  Value* inside = nullptr;
  const auto at_sum = [&](Value* place) {
    if (!even) inside = ir_.CreateICmpULT(place, number(static_cast<unsigned>(product.depth)));
    decode(even ? place : clamped(place, product.depth, operand.along_sum ? operand.lanes : 1), side.summed);
  };
  const auto at_side = [&](Value* place) { decode(clamped(place, side.size, operand.along_sum ? 1 : operand.lanes), operand.loops); };
  operand.along_sum ? at_sum(ir_.CreateAdd(sum, along)) : at_side(ir_.CreateAdd(side.first, along));
  for (unsigned row = 0; row < rows; row += down)
    within([&] {
      Value* mine = ir_.CreateAdd(first, number(row));
      operand.along_sum ? at_side(ir_.CreateAdd(side.first, mine)) : at_sum(ir_.CreateAdd(sum, mine));
      load_vector(side, at_bytes(to, number(row * side.row_bytes())), inside);
    });
}

/// `inside`: an i1 without which there are zeros; null: always.
void ProductEmitter::load_vector(const Side& side, Value* to, Value* inside) {
  const TileOperand& operand = side.operand;
  const ProductTile& product = side.product;
  const auto bytes = static_cast<unsigned>(operand.lanes * size_of(product.dtype));
  if (operand.copied != codegen::kNoOp && !schedule_.is_number(kernel_.operations[operand.copied].payload)) {
    if (operand.mask != codegen::kNoOp) {
      Value* mask = value(operand.mask).value;
      inside = inside ? ir_.CreateAnd(inside, mask) : mask;
    }
    const Operation& load = kernel_.operations[operand.copied];
    return isa_.copy_to_shared(b_, to, place_in_buffer(load.payload, load.offset), bytes, inside);
  }
  const Lanes element = operand.lanes > 1 ? widened(operand.element) : value(operand.element);
  Value* stored = b_.to_storage(b_.convert(element, product.dtype), product.dtype);
  if (inside) stored = ir_.CreateSelect(inside, stored, llvm::Constant::getNullValue(stored->getType()));
  ir_.CreateAlignedStore(stored, to, llvm::Align(bytes));
}

}  // namespace tenon::cuda
