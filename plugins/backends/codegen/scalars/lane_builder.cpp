#include "scalars/lane_builder.h"

#include <llvm/IR/Intrinsics.h>

#include "core/base/error.h"
#include "loops/kernel.h"
#include "scalars/exact_sum.h"
#include "scalars/functions.h"

namespace tenon::codegen {

using llvm::Value;
using Pred = llvm::CmpInst::Predicate;
using P = ops::Primitive;

llvm::Type* LaneBuilder::register_type(DType dtype) {
  switch (dtype) {
    case DType::b8: return ir.getInt1Ty();
    case DType::u8: case DType::i8: return ir.getInt8Ty();
    case DType::i16: return ir.getInt16Ty();
    case DType::i32: return ir.getInt32Ty();
    case DType::i64: return ir.getInt64Ty();
    case DType::f16: case DType::bf16: case DType::f32: return ir.getFloatTy();
    case DType::f64: return ir.getDoubleTy();
    default: break;
  }
  TENON_CHECK(false, "{} has no register form", name_of(dtype));
}

llvm::Type* LaneBuilder::storage_type(DType dtype) {
  if (dtype == DType::b8) return ir.getInt8Ty();
  if (dtype == DType::bf16) return ir.getInt16Ty();
  if (dtype == DType::f16) return isa_.has_half() ? ir.getHalfTy() : static_cast<llvm::Type*>(ir.getInt16Ty());
  return register_type(dtype);
}

llvm::Type* LaneBuilder::with_width(llvm::Type* element, Value* like) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType())) return llvm::FixedVectorType::get(element, vector->getNumElements());
  return element;
}

Lanes LaneBuilder::constant(DType dtype, std::uint64_t bits) {
  llvm::Type* type = register_type(dtype);
  Value* value = nullptr;
  if (type->isFloatTy()) value = llvm::ConstantFP::get(type, llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, bits & 0xffffffffu)));
  else if (type->isDoubleTy()) value = llvm::ConstantFP::get(type, llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, bits)));
  else value = llvm::ConstantInt::get(ir.getContext(), llvm::APInt(64, bits).zextOrTrunc(type->getIntegerBitWidth()));
  return {value, dtype, false};
}

Lanes LaneBuilder::widen(Lanes a) {
  if (a.varying) return a;
  return {splat(a.value), a.dtype, true, a.stored ? splat(a.stored) : nullptr, a.stored_as};
}

Lanes LaneBuilder::select(Lanes condition, Lanes a, Lanes b) {
  if (a.varying || b.varying || condition.varying) a = widen(a), b = widen(b);
  Lanes chosen = {ir.CreateSelect(condition.value, a.value, b.value), a.dtype, a.varying};
  const DType storage = a.stored ? a.stored_as : b.stored_as;
  Value *a_stored = stored_form(a, storage), *b_stored = stored_form(b, storage);
  if (a_stored && b_stored) chosen.stored = ir.CreateSelect(condition.value, a_stored, b_stored), chosen.stored_as = storage;
  return chosen;
}

Lanes LaneBuilder::primitive(P p, DType dtype, std::span<const Lanes> arguments) {
  if (p == P::select) return select(arguments[0], arguments[1], arguments[2]);
  if (p == P::convert) return convert(arguments[0], dtype);
  Lanes args[3];
  bool varying = false;
  for (const Lanes& a : arguments) varying |= a.varying;
  for (std::size_t i = 0; i < arguments.size(); ++i) args[i] = varying ? widen(arguments[i]) : arguments[i];
  const DType type = compute_type(args[0].dtype);
  if (p == P::bit_cast) return {ir.CreateBitCast(args[0].value, with_width(register_type(dtype), args[0].value)), dtype, varying};
  if (p >= P::eq && p <= P::ge) return compare(p, args[0], args[1]);
  if (p == P::isnan) {
    Value* result = is_float(type) ? ir.CreateFCmpUNO(args[0].value, args[0].value)
                                   : llvm::ConstantInt::get(with_width(ir.getInt1Ty(), args[0].value), 0);
    return {result, DType::b8, varying};
  }
  if (type == DType::b8) return boolean(p, args[0], args[1]);
  if (p == P::logical_and || p == P::logical_or || p == P::logical_xor || p == P::logical_not)
    return boolean(p, convert(args[0], DType::b8), arguments.size() > 1 ? convert(args[1], DType::b8) : Lanes{});
  if (p == P::minimum || p == P::maximum) return extreme(p == P::maximum, args[0], args[1]);
  if (p == P::sign) {
    const Lanes zero = zero_like(args[0]);
    const Lanes above = convert(compare(P::gt, args[0], zero), DType::i8), below = convert(compare(P::lt, args[0], zero), DType::i8);
    return convert({ir.CreateSub(above.value, below.value), DType::i8, varying}, dtype);
  }
  if (!is_float(type)) return integer(p, args[0], args[1]);
  if (p == P::fma) {
    if (isa_.has_fma())
      return {ir.CreateIntrinsic(llvm::Intrinsic::fma, {args[0].value->getType()}, {args[0].value, args[1].value, args[2].value}), dtype, varying};
    return {ir.CreateFAdd(ir.CreateFMul(args[0].value, args[1].value), args[2].value), dtype, varying};
  }
  return arguments.size() > 1 ? float_binary(p, args[0], args[1]) : float_unary(p, args[0]);
}

/// Zero, in the form of `a`.
Lanes LaneBuilder::zero_like(Lanes a) {
  return {llvm::Constant::getNullValue(a.value->getType()), a.dtype, a.varying};
}

Lanes LaneBuilder::float_unary(P p, Lanes a) {
  auto intrinsic = [&](llvm::Intrinsic::ID id) { return Lanes{ir.CreateUnaryIntrinsic(id, a.value), a.dtype, a.varying}; };
  switch (p) {
    case P::neg: return {ir.CreateFNeg(a.value), a.dtype, a.varying};
    case P::abs: return intrinsic(llvm::Intrinsic::fabs);
    case P::floor: return intrinsic(llvm::Intrinsic::floor);
    case P::ceil: return intrinsic(llvm::Intrinsic::ceil);
    case P::trunc: return intrinsic(llvm::Intrinsic::trunc);
    case P::round: return intrinsic(llvm::Intrinsic::roundeven);
    case P::sqrt: return intrinsic(llvm::Intrinsic::sqrt);
    case P::rsqrt: {
      Value* root = ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a.value);
      return {ir.CreateFDiv(number(root, 1.0), root), a.dtype, a.varying};
    }
    default: return {emit_function(*this, p, a.value, nullptr), a.dtype, a.varying};
  }
}

Lanes LaneBuilder::float_binary(P p, Lanes a, Lanes b) {
  auto give = [&](Value* v) { return Lanes{v, a.dtype, a.varying}; };
  switch (p) {
    case P::add: return give(emit_sum(ir, a.value, b.value, isa_.has_fma()));
    case P::sub: return give(ir.CreateFSub(a.value, b.value));
    case P::mul: return give(ir.CreateFMul(a.value, b.value));
    case P::div: return give(ir.CreateFDiv(a.value, b.value));
    case P::floor_div: return give(ir.CreateUnaryIntrinsic(llvm::Intrinsic::floor, ir.CreateFDiv(a.value, b.value)));
    case P::trunc_div: return give(ir.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, ir.CreateFDiv(a.value, b.value)));
    case P::remainder: {
      Value* m = emit_function(*this, P::fmod, a.value, b.value);
      Value* zero = number(m, 0.0);
      Value* differ = ir.CreateXor(float_compare(Pred::FCMP_OLT, m, zero), float_compare(Pred::FCMP_OLT, b.value, zero));
      return give(ir.CreateSelect(ir.CreateAnd(ir.CreateFCmpUNE(m, zero), differ), ir.CreateFAdd(m, b.value), m));
    }
    default: return give(emit_function(*this, p, a.value, b.value));
  }
}

Lanes LaneBuilder::extreme(bool maximum, Lanes a, Lanes b) {
  if (!is_float(compute_type(a.dtype))) {
    const bool is_signed = is_signed_int(a.dtype);
    const auto id = maximum ? (is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax) : (is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin);
    return {ir.CreateBinaryIntrinsic(id, a.value, b.value), a.dtype, a.varying};
  }
  // One instruction of most machines when b is a number: the comparison is false for a NaN in a, which is handed on.
  auto pick = [&](Value* x, Value* y) { return ir.CreateSelect(float_compare(maximum ? Pred::FCMP_OGT : Pred::FCMP_OLT, y, x), y, x); };
  auto is_number = [](Value* v) {
    auto* c = llvm::dyn_cast<llvm::Constant>(v);
    if (c && c->getType()->isVectorTy()) c = c->getSplatValue();
    auto* f = llvm::dyn_cast_or_null<llvm::ConstantFP>(c);
    return f && !f->isNaN();
  };
  if (is_number(b.value)) return {pick(a.value, b.value), a.dtype, a.varying};
  if (is_number(a.value)) return {pick(b.value, a.value), a.dtype, a.varying};
  // Of zeros of both signs the second, as eager's vector instructions have it.
  Value* result = pick(b.value, a.value);
  return {ir.CreateSelect(ir.CreateFCmpUNO(a.value, a.value), a.value, result), a.dtype, a.varying};
}

Value* LaneBuilder::float_compare(Pred predicate, Value* a, Value* b) {
  const bool orders = predicate != Pred::FCMP_OEQ && predicate != Pred::FCMP_UNE && predicate != Pred::FCMP_UNO && predicate != Pred::FCMP_ORD;
  return orders ? isa_.ordering(*this, predicate, a, b) : ir.CreateFCmp(predicate, a, b);
}

Lanes LaneBuilder::compare(P p, Lanes a, Lanes b) {
  static constexpr Pred kFloat[] = {Pred::FCMP_OEQ, Pred::FCMP_UNE, Pred::FCMP_OLT, Pred::FCMP_OLE, Pred::FCMP_OGT, Pred::FCMP_OGE};
  static constexpr Pred kSigned[] = {Pred::ICMP_EQ, Pred::ICMP_NE, Pred::ICMP_SLT, Pred::ICMP_SLE, Pred::ICMP_SGT, Pred::ICMP_SGE};
  static constexpr Pred kUnsigned[] = {Pred::ICMP_EQ, Pred::ICMP_NE, Pred::ICMP_ULT, Pred::ICMP_ULE, Pred::ICMP_UGT, Pred::ICMP_UGE};
  const int k = static_cast<int>(p) - static_cast<int>(P::eq);
  const DType type = compute_type(a.dtype);
  Value* result = is_float(type)        ? float_compare(kFloat[k], a.value, b.value)
                  : is_signed_int(type) ? ir.CreateICmp(kSigned[k], a.value, b.value)
                                        : ir.CreateICmp(kUnsigned[k], a.value, b.value);
  return {result, DType::b8, a.varying};
}

Lanes LaneBuilder::boolean(P p, Lanes a, Lanes b) {
  auto give = [&](Value* v) { return Lanes{v, DType::b8, a.varying}; };
  switch (p) {
    case P::logical_and: case P::bitwise_and: case P::minimum: case P::mul: return give(ir.CreateAnd(a.value, b.value));
    case P::logical_or: case P::bitwise_or: case P::maximum: case P::add: return give(ir.CreateOr(a.value, b.value));
    case P::logical_xor: case P::bitwise_xor: return give(ir.CreateXor(a.value, b.value));
    case P::logical_not: case P::bitwise_not: return give(ir.CreateNot(a.value));
    default: break;
  }
  TENON_CHECK(false, "the primitive {} is not defined for bool", ops::name_of(p));
}

Lanes LaneBuilder::integer(P p, Lanes a, Lanes b) {
  auto give = [&](Value* v) { return Lanes{v, a.dtype, a.varying}; };
  const bool is_signed = a.dtype != DType::u8;
  const unsigned bits = a.value->getType()->getScalarSizeInBits();
  switch (p) {
    case P::add: return give(ir.CreateAdd(a.value, b.value));
    case P::sub: return give(ir.CreateSub(a.value, b.value));
    case P::mul: return give(ir.CreateMul(a.value, b.value));
    case P::neg: return give(ir.CreateNeg(a.value));
    case P::abs:
      return is_signed ? give(ir.CreateSelect(ir.CreateICmpSLT(a.value, integer_like(a.value, 0)), ir.CreateNeg(a.value), a.value)) : a;
    case P::floor: case P::ceil: case P::trunc: case P::round: return a;
    case P::bitwise_and: return give(ir.CreateAnd(a.value, b.value));
    case P::bitwise_or: return give(ir.CreateOr(a.value, b.value));
    case P::bitwise_xor: return give(ir.CreateXor(a.value, b.value));
    case P::bitwise_not: return give(ir.CreateNot(a.value));
    case P::shift_left: {
      Value* inside = ir.CreateICmpULT(b.value, integer_like(b.value, bits));
      return give(ir.CreateSelect(inside, ir.CreateShl(a.value, ir.CreateSelect(inside, b.value, integer_like(b.value, 0))), integer_like(a.value, 0)));
    }
    case P::shift_right: {
      Value* inside = ir.CreateICmpULT(b.value, integer_like(b.value, bits));
      Value* amount = ir.CreateSelect(inside, b.value, integer_like(b.value, bits - 1));
      if (is_signed) return give(ir.CreateAShr(a.value, amount));
      return give(ir.CreateSelect(inside, ir.CreateLShr(a.value, amount), integer_like(a.value, 0)));
    }
    case P::floor_div: case P::trunc_div: case P::remainder: case P::fmod: return integer_division(p, a, b);
    case P::pow: return integer_power(a, b);
    default: break;
  }
  TENON_CHECK(false, "the primitive {} is not defined for {}", ops::name_of(p), name_of(a.dtype));
}

/// Division by 0 gives 0, and the least number divided by -1 wraps: the divisor becomes 1 there.
Lanes LaneBuilder::integer_division(P p, Lanes a, Lanes b) {
  auto give = [&](Value* v) { return Lanes{v, a.dtype, a.varying}; };
  Value* zero = integer_like(a.value, 0);
  Value* by_zero = ir.CreateICmpEQ(b.value, zero);
  const bool is_signed = a.dtype != DType::u8;
  Value* unsafe = by_zero;
  if (is_signed) {
    const unsigned bits = a.value->getType()->getScalarSizeInBits();
    Value* least = llvm::ConstantInt::get(a.value->getType(), llvm::APInt::getSignedMinValue(bits));
    unsafe = ir.CreateOr(by_zero, ir.CreateAnd(ir.CreateICmpEQ(b.value, integer_like(b.value, -1)), ir.CreateICmpEQ(a.value, least)));
  }
  Value* divisor = ir.CreateSelect(unsafe, integer_like(b.value, 1), b.value);
  const bool quotient = p == P::floor_div || p == P::trunc_div;
  if (!is_signed) {
    Value* r = quotient ? ir.CreateUDiv(a.value, divisor) : ir.CreateURem(a.value, divisor);
    return give(ir.CreateSelect(by_zero, zero, r));
  }
  Value* q = p == P::remainder || p == P::fmod ? nullptr : ir.CreateSDiv(a.value, divisor);
  if (p == P::trunc_div) return give(ir.CreateSelect(by_zero, zero, q));
  Value* m = q ? ir.CreateSub(a.value, ir.CreateMul(q, divisor)) : ir.CreateSRem(a.value, divisor);
  if (p == P::fmod) return give(ir.CreateSelect(by_zero, zero, m));
  Value* differ = ir.CreateICmpSLT(ir.CreateXor(m, divisor), zero);
  Value* adjust = ir.CreateAnd(ir.CreateICmpNE(m, zero), differ);
  Value* r = p == P::floor_div ? ir.CreateSelect(adjust, ir.CreateSub(q, integer_like(q, 1)), q)
                               : ir.CreateSelect(adjust, ir.CreateAdd(m, divisor), m);
  return give(ir.CreateSelect(by_zero, zero, r));
}

/// By squaring, one step a bit of the exponent's type.
Lanes LaneBuilder::integer_power(Lanes a, Lanes b) {
  Value* result = integer_like(a.value, 1);
  Value* base = a.value;
  Value* exponent = b.value;
  const unsigned bits = a.value->getType()->getScalarSizeInBits();
  for (unsigned k = 0; k < bits; ++k) {
    Value* odd = ir.CreateICmpNE(ir.CreateAnd(exponent, integer_like(exponent, 1)), integer_like(exponent, 0));
    result = ir.CreateSelect(odd, ir.CreateMul(result, base), result);
    base = ir.CreateMul(base, base);
    exponent = ir.CreateLShr(exponent, integer_like(exponent, 1));
  }
  if (a.dtype == DType::u8) return {result, a.dtype, a.varying};
  Value* one = integer_like(a.value, 1);
  Value* zero = integer_like(a.value, 0);
  Value* odd = ir.CreateICmpNE(ir.CreateAnd(b.value, one), zero);
  Value* minus = ir.CreateSelect(odd, integer_like(a.value, -1), one);
  Value* inverse = ir.CreateSelect(ir.CreateICmpEQ(a.value, one), one, ir.CreateSelect(ir.CreateICmpEQ(a.value, integer_like(a.value, -1)), minus, zero));
  return {ir.CreateSelect(ir.CreateICmpSLT(b.value, zero), inverse, result), a.dtype, a.varying};
}

/// Out of range and NaN give the least number; narrow integers go through 32 bits.
Value* LaneBuilder::float_to_integer(Value* value, DType from, DType to) {
  llvm::Type* wide = with_width(to == DType::i64 ? ir.getInt64Ty() : ir.getInt32Ty(), value);
  const double limit = to == DType::i64 ? 9223372036854775808.0 : 2147483648.0;
  Value* inside = ir.CreateAnd(ir.CreateFCmpOGE(value, number(value, -limit)), ir.CreateFCmpOLT(value, number(value, limit)));
  if (from == DType::f64 && to != DType::i64) inside = ir.CreateAnd(ir.CreateFCmpOGT(value, number(value, -limit - 1)), ir.CreateFCmpOLT(value, number(value, limit)));
  Value* safe = ir.CreateSelect(inside, value, number(value, 0.0));
  Value* least = llvm::ConstantInt::get(wide, llvm::APInt::getSignedMinValue(to == DType::i64 ? 64 : 32));
  Value* result = ir.CreateSelect(inside, ir.CreateFPToSI(safe, wide), least);
  return ir.CreateTrunc(result, with_width(register_type(to), value));
}

Lanes LaneBuilder::convert(Lanes a, DType to) {
  const DType from = compute_type(a.dtype);
  if (is_reduced_float(to)) return round_to_storage(convert(a, DType::f32), to);
  if (from == to) return {a.value, to, a.varying, a.stored, a.stored_as};
  llvm::Type* type = with_width(register_type(to), a.value);
  auto give = [&](Value* v) { return Lanes{v, to, a.varying}; };
  if (to == DType::b8)
    return give(is_float(from) ? ir.CreateFCmpUNE(a.value, number(a.value, 0.0)) : ir.CreateICmpNE(a.value, integer_like(a.value, 0)));
  if (is_float(from) && is_float(to)) return give(to == DType::f64 ? ir.CreateFPExt(a.value, type) : ir.CreateFPTrunc(a.value, type));
  if (is_float(from)) return give(float_to_integer(a.value, from, to));
  if (is_float(to)) return give(is_signed_int(from) ? ir.CreateSIToFP(a.value, type) : ir.CreateUIToFP(a.value, type));
  return give(ir.CreateIntCast(a.value, type, is_signed_int(from)));
}

std::vector<Lanes> LaneBuilder::program(const ops::ScalarProgram& program, std::span<const Lanes> parameters,
                                        const std::function<Value*(const ir::Dim&)>& extent) {
  std::vector<Lanes> registers;
  for (const ops::Instruction& i : program.instructions) {
    if (i.op == P::constant) {
      registers.push_back(constant(i.dtype, i.payload));
    } else if (i.op == P::parameter) {
      registers.push_back(parameters[i.payload]);
    } else if (i.op == P::extent) {
      registers.push_back({extent(program.dims[i.payload]), DType::i64, false});
    } else {
      TENON_CHECK(i.op > P::load, "a reducer may not use {}", ops::name_of(i.op));
      const std::size_t count = arity(i.op);
      Lanes args[3];
      for (std::size_t k = 0; k < count; ++k) args[k] = registers[i.args[k]];
      registers.push_back(primitive(i.op, i.dtype, {args, count}));
    }
  }
  std::vector<Lanes> results;
  for (auto r : program.results) results.push_back(registers[r]);
  return results;
}

}  // namespace tenon::codegen
