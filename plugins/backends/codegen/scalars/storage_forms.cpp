// Between the form of values in memory and in registers: bytes of bools, and floats of 16 bits.
#include "scalars/lane_builder.h"

namespace tenon::codegen {

using llvm::Value;

/// Round to nearest, ties to even, on the bits; NaN stays a NaN.
Value* LaneBuilder::bf16_bits(Value* f32) {
  Value* bits = ir.CreateBitCast(f32, with_width(ir.getInt32Ty(), f32));
  Value* odd = ir.CreateAnd(ir.CreateLShr(bits, integer_like(bits, 16)), integer_like(bits, 1));
  Value* rounded = ir.CreateAdd(bits, ir.CreateAdd(odd, integer_like(bits, 0x7fff)));
  Value* quiet = ir.CreateOr(bits, integer_like(bits, 0x400000));
  Value* chosen = ir.CreateSelect(ir.CreateFCmpUNO(f32, f32), quiet, rounded);
  return ir.CreateTrunc(ir.CreateLShr(chosen, integer_like(bits, 16)), with_width(ir.getInt16Ty(), f32));
}

/// The exponent is moved by a multiplication, which is exact and makes subnormals normal.
Value* LaneBuilder::half_from_bits(Value* stored) {
  Value* bits = ir.CreateZExt(stored, with_width(ir.getInt32Ty(), stored));
  llvm::Type* real = with_width(ir.getFloatTy(), stored);
  Value* magnitude = ir.CreateShl(ir.CreateAnd(bits, integer_like(bits, 0x7fff)), 13);
  Value* scaled = ir.CreateBitCast(magnitude, real);
  scaled = ir.CreateBitCast(ir.CreateFMul(scaled, number(scaled, 0x1p112)), bits->getType());
  Value* special = ir.CreateICmpUGE(magnitude, integer_like(bits, 0x0f800000));
  scaled = ir.CreateSelect(special, ir.CreateOr(magnitude, integer_like(bits, 0x7f800000)), scaled);
  Value* sign = ir.CreateShl(ir.CreateAnd(bits, integer_like(bits, 0x8000)), 16);
  return ir.CreateBitCast(ir.CreateOr(scaled, sign), real);
}

/// As base/float16.h does it for one number.
Value* LaneBuilder::half_bits(Value* f32) {
  Value* bits = ir.CreateBitCast(f32, with_width(ir.getInt32Ty(), f32));
  auto k = [&](std::int64_t v) { return integer_like(bits, v); };
  Value* magnitude = ir.CreateAnd(bits, k(0x7fffffff));
  Value* rebased = ir.CreateSub(magnitude, k(112ll << 23));
  Value* odd = ir.CreateAnd(ir.CreateLShr(rebased, 13), k(1));
  Value* normal = ir.CreateLShr(ir.CreateAdd(ir.CreateAdd(rebased, k(0xfff)), odd), 13);
  Value* shifted = ir.CreateFAdd(ir.CreateBitCast(magnitude, f32->getType()), number(f32, 0.5));
  Value* subnormal = ir.CreateSub(ir.CreateBitCast(shifted, bits->getType()), k(0x3f000000));
  Value* nan = ir.CreateOr(k(0x7e00), ir.CreateAnd(ir.CreateLShr(magnitude, 13), k(0x3ff)));
  Value* result = ir.CreateSelect(ir.CreateICmpUGE(magnitude, k(0x38800000)), normal, subnormal);
  result = ir.CreateSelect(ir.CreateICmpUGE(magnitude, k(0x477ff000)), k(0x7c00), result);
  result = ir.CreateSelect(ir.CreateICmpUGT(magnitude, k(0x7f800000)), nan, result);
  result = ir.CreateOr(result, ir.CreateAnd(ir.CreateLShr(bits, 16), k(0x8000)));
  return ir.CreateTrunc(result, with_width(ir.getInt16Ty(), f32));
}

/// Memory's form of `a` where no rounding is needed for it; null otherwise.
Value* LaneBuilder::stored_form(const Lanes& a, DType storage) {
  if (a.stored && a.stored_as == storage) return a.stored;
  if (!is_reduced_float(storage) || !llvm::isa<llvm::Constant>(a.value)) return nullptr;
  Value* bits = rounded_bits(a.value, storage);
  return from_storage(bits, storage, a.varying).value == a.value ? bits : nullptr;
}

Value* LaneBuilder::rounded_bits(Value* f32, DType storage) {
  if (storage == DType::bf16) return bf16_bits(f32);
  return isa_.has_half() ? ir.CreateFPTrunc(f32, with_width(ir.getHalfTy(), f32)) : half_bits(f32);
}

Lanes LaneBuilder::round_to_storage(Lanes a, DType storage) {
  Lanes rounded = from_storage(to_storage({a.value, DType::f32, a.varying, a.stored, a.stored_as}, storage), storage, a.varying);
  rounded.dtype = DType::f32;
  return rounded;
}

Lanes LaneBuilder::from_storage(Value* stored, DType storage, bool varying) {
  if (storage == DType::b8) return {ir.CreateICmpNE(stored, integer_like(stored, 0)), DType::b8, varying};
  if (!is_reduced_float(storage)) return {stored, storage, varying};
  llvm::Type* real = with_width(ir.getFloatTy(), stored);
  Value* value = nullptr;
  if (storage == DType::bf16) value = ir.CreateBitCast(ir.CreateShl(ir.CreateZExt(stored, with_width(ir.getInt32Ty(), stored)), 16), real);
  else value = isa_.has_half() ? ir.CreateFPExt(stored, real) : half_from_bits(stored);
  return {value, DType::f32, varying, stored, storage};
}

Value* LaneBuilder::to_storage(Lanes value, DType storage) {
  if (Value* known = stored_form(value, storage)) return known;
  const Lanes v = convert(value, compute_type(storage));
  if (storage == DType::b8) return ir.CreateZExt(v.value, with_width(ir.getInt8Ty(), v.value));
  return is_reduced_float(storage) ? rounded_bits(v.value, storage) : v.value;
}

}  // namespace tenon::codegen
