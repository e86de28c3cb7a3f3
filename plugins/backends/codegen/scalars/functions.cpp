#include "scalars/functions.h"

#include <llvm/IR/Intrinsics.h>

#include <limits>

namespace tenon::codegen {

using llvm::Value;
using P = ops::Primitive;

Value* polynomial(LaneBuilder& b, Value* x, std::initializer_list<double> coefficients) {
  Value* sum = nullptr;
  for (double c : coefficients) {
    Value* k = llvm::ConstantFP::get(x->getType(), c);
    sum = sum ? b.fused_multiply_add(sum, x, k) : k;
  }
  return sum;
}

namespace {

Value* real(Value* like, double v) { return llvm::ConstantFP::get(like->getType(), v); }

/// Keeps NaN: the comparison is false for it.
Value* at_most(LaneBuilder& b, Value* x, double limit) { return b.ir.CreateSelect(b.float_compare(llvm::CmpInst::FCMP_OGT, x, real(x, limit)), real(x, limit), x); }

llvm::Type* int_type_like(LaneBuilder& b, Value* x) {
  llvm::Type* element = b.ir.getInt32Ty();
  if (auto* v = llvm::dyn_cast<llvm::FixedVectorType>(x->getType())) return llvm::FixedVectorType::get(element, v->getNumElements());
  return element;
}

Value* int_like(Value* like, std::int64_t v) { return llvm::ConstantInt::get(like->getType(), static_cast<std::uint64_t>(v), true); }

/// 2^n as a float32, for n in [-126, 127].
Value* power_of_two(LaneBuilder& b, Value* n, llvm::Type* type) {
  return b.ir.CreateBitCast(b.ir.CreateShl(b.ir.CreateAdd(n, int_like(n, 127)), 23), type);
}

/// v * 2^n for whole n in [-254, 254], rounded once; in one step where n is `normal`: in [-126, 127].
Value* times_power_of_two(LaneBuilder& b, Value* v, Value* n, bool normal = false) {
  if (Value* scaled = b.isa().times_power_of_two(b, v, n)) return scaled;
  Value* whole = b.ir.CreateFPToSI(n, int_type_like(b, n));
  if (normal) return b.ir.CreateFMul(v, power_of_two(b, whole, v->getType()));
  Value* half = b.ir.CreateAShr(whole, int_like(whole, 1));
  Value* rest = b.ir.CreateSub(whole, half);
  return b.ir.CreateFMul(b.ir.CreateFMul(v, power_of_two(b, half, v->getType())), power_of_two(b, rest, v->getType()));
}

/// exp(x) = e * 2^n in float32, e under 1 ulp: x = n ln2 + r, a polynomial of degree 6 on |r| <= ln2/2. Coefficients: minimax fit of
/// (exp(r) - 1 - r) / r^2 (Cephes expf).
struct ScaledExponential {
  Value* e;
  Value* n;  // whole
};
ScaledExponential scaled_exponential(LaneBuilder& b, Value* x) {
  Value* n = b.ir.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, b.ir.CreateFMul(x, real(x, 1.44269504088896341)));
  Value* r = b.fused_multiply_add(n, real(n, -0.693359375), x);
  r = b.fused_multiply_add(n, real(n, 2.12194440e-4), r);
  Value* p = polynomial(b, r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  return {b.ir.CreateFAdd(b.fused_multiply_add(p, b.ir.CreateFMul(r, r), r), real(r, 1.0)), n};
}

/// exp in float32, scaled in two steps so that subnormal results and overflow come out right. What rounds to zero (masked scores of
/// attention) is left out: a result that underflows costs as much as a hundred others.
Value* exp_f32(LaneBuilder& b, Value* x0) {
  Value* vanishes = b.float_compare(llvm::CmpInst::FCMP_OLT, x0, real(x0, -103.98));
  Value* x = b.ir.CreateSelect(vanishes, real(x0, 0.0), at_most(b, x0, 89.0));
  const bool quiet = b.isa().keeps_flags();  // a NaN made an integer, the exponent, would set a flag, as would an infinity
  Value* itself = quiet ? b.ir.CreateFCmpUEQ(x0, real(x0, std::numeric_limits<double>::infinity())) : nullptr;
  if (quiet) x = b.ir.CreateSelect(itself, real(x0, 0.0), x);
  const auto [e, n] = scaled_exponential(b, x);
  Value* result = b.ir.CreateSelect(vanishes, real(x0, 0.0), times_power_of_two(b, e, n));
  return quiet ? b.ir.CreateSelect(itself, x0, result) : result;
}

/// exp in float32 of what lies in [-87, 88] or is NaN.
Value* bounded_exp_f32(LaneBuilder& b, Value* x) {
  if (b.isa().keeps_flags()) return exp_f32(b, x);  // which makes no integer of a NaN
  const auto [e, n] = scaled_exponential(b, x);
  return times_power_of_two(b, e, n, true);
}

/// log in float32, about 1 ulp (Cephes logf): mantissa in [sqrt(1/2), sqrt(2)), a polynomial of degree 9.
Value* log_f32(LaneBuilder& b, Value* x) {
  auto& ir = b.ir;
  Value* subnormal = b.float_compare(llvm::CmpInst::FCMP_OLT, x, real(x, 1.17549435e-38));
  Value* scaled = ir.CreateSelect(subnormal, ir.CreateFMul(x, real(x, 33554432.0)), x);
  Value* bits = ir.CreateBitCast(scaled, int_type_like(b, x));
  Value* shifted = ir.CreateSub(bits, int_like(bits, 0x3f3504f3));  // sqrt(1/2): the exponent now counts from it
  Value* exponent = ir.CreateAShr(shifted, int_like(bits, 23));
  Value* mantissa = ir.CreateBitCast(ir.CreateSub(bits, ir.CreateShl(exponent, 23)), x->getType());
  Value* e = ir.CreateFSub(ir.CreateSIToFP(exponent, x->getType()), ir.CreateSelect(subnormal, real(x, 25.0), real(x, 0.0)));
  Value* f = ir.CreateFSub(mantissa, real(x, 1.0));
  Value* z = ir.CreateFMul(f, f);
  Value* p = polynomial(b, f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
                               2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  Value* y = ir.CreateFMul(ir.CreateFMul(p, f), z);
  y = b.fused_multiply_add(e, real(e, -2.12194440e-4), y);
  y = b.fused_multiply_add(z, real(z, -0.5), y);
  Value* result = b.fused_multiply_add(e, real(e, 0.693359375), ir.CreateFAdd(f, y));
  Value* infinite = ir.CreateFCmpOEQ(x, real(x, std::numeric_limits<double>::infinity()));
  result = ir.CreateSelect(infinite, x, result);
  result = ir.CreateSelect(ir.CreateFCmpOEQ(x, real(x, 0.0)), real(x, -std::numeric_limits<double>::infinity()), result);
  Value* invalid = b.float_compare(llvm::CmpInst::FCMP_ULT, x, real(x, 0.0));  // or NaN
  return ir.CreateSelect(invalid, real(x, std::numeric_limits<double>::quiet_NaN()), result);
}

/// tanh in float32, under 2 ulp: an odd polynomial near 0 (Cephes tanhf), else 1 - 2 / (exp(2|x|) + 1).
Value* tanh_f32(LaneBuilder& b, Value* x) {
  auto& ir = b.ir;
  Value* magnitude = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* z = ir.CreateFMul(x, x);
  Value* p = polynomial(b, z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  Value* small = b.fused_multiply_add(ir.CreateFMul(p, z), x, x);
  Value* e = bounded_exp_f32(b, ir.CreateFMul(at_most(b, magnitude, 20.0), real(x, 2.0)));
  Value* large = ir.CreateFSub(real(x, 1.0), ir.CreateFDiv(real(x, 2.0), ir.CreateFAdd(e, real(x, 1.0))));
  Value* result = ir.CreateSelect(b.float_compare(llvm::CmpInst::FCMP_OLT, magnitude, real(x, 0.625)), small, large);
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);  // the polynomial loses that of -0
}

}  // namespace

Value* circular_f32(LaneBuilder& b, P p, Value* x) {
  auto& ir = b.ir;
  constexpr double kRounding = 12582912.0;  // 1.5 * 2^23: what is added to it is rounded to a whole number, which is in the lowest bits
  Value* magnitude = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);  // keeps the sign of zero out of the sums
  Value* turned = b.fused_multiply_add(magnitude, real(x, 0.63661977236758134), real(x, kRounding));
  Value* n = ir.CreateFSub(turned, real(x, kRounding));
  Value* r = b.fused_multiply_add(n, real(x, -1.57079637050628662109375), magnitude);
  r = b.fused_multiply_add(n, real(x, 4.371138828673793e-08), r);
  r = b.fused_multiply_add(n, real(x, 1.7151245100058819e-15), r);
  Value* z = ir.CreateFMul(r, r);
  Value* sine = polynomial(b, z, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1});
  sine = b.fused_multiply_add(ir.CreateFMul(sine, z), r, r);
  Value* cosine = polynomial(b, z, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2});
  cosine = b.fused_multiply_add(ir.CreateFMul(cosine, z), z, b.fused_multiply_add(z, real(x, -0.5), real(x, 1.0)));
  Value* quadrant = ir.CreateBitCast(turned, int_type_like(b, x));
  if (p == P::cos) quadrant = ir.CreateAdd(quadrant, int_like(quadrant, 1));
  Value* odd = ir.CreateICmpNE(ir.CreateAnd(quadrant, int_like(quadrant, 1)), int_like(quadrant, 0));
  Value* bits = ir.CreateBitCast(ir.CreateSelect(odd, cosine, sine), quadrant->getType());
  Value* sign = ir.CreateShl(quadrant, 30);
  if (p == P::sin) sign = ir.CreateXor(sign, ir.CreateBitCast(x, quadrant->getType()));
  return ir.CreateBitCast(ir.CreateXor(bits, ir.CreateAnd(sign, int_like(sign, std::int64_t{1} << 31))), x->getType());
}

Value* LaneBuilder::fused_multiply_add(Value* a, Value* b, Value* c) {
  if (isa_.has_fma()) return ir.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  return ir.CreateFAdd(ir.CreateFMul(a, b), c);
}

Value* emit_function(LaneBuilder& b, P p, Value* x, Value* y) {
  if (!x->getType()->getScalarType()->isDoubleTy()) {
    if (p == P::exp) return exp_f32(b, x);
    if (p == P::log) return log_f32(b, x);
    if (p == P::tanh) return tanh_f32(b, x);
  }
  return b.isa().function(b, p, x, y);
}

}  // namespace tenon::codegen
