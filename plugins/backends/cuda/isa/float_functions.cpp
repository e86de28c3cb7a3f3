#include "isa/float_functions.h"

#include <llvm/IR/Intrinsics.h>

#include <limits>
#include <numbers>

#include "scalars/functions.h"

namespace tenon::cuda {

using codegen::LaneBuilder;
using llvm::Value;
using P = ops::Primitive;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

/// Arithmetic on values of one type, for formulas that read like ones.
class Formula {
 public:
  Formula(LaneBuilder& b, llvm::Type* type) : b_(b), ir_(b.ir), type_(type) {}

  bool is_double() const { return type_->getScalarType()->isDoubleTy(); }
  Value* number(double v) const { return llvm::ConstantFP::get(type_, v); }
  Value* add(Value* a, Value* c) const { return ir_.CreateFAdd(a, c); }
  Value* sub(Value* a, Value* c) const { return ir_.CreateFSub(a, c); }
  Value* mul(Value* a, Value* c) const { return ir_.CreateFMul(a, c); }
  Value* div(Value* a, Value* c) const { return ir_.CreateFDiv(a, c); }
  Value* fma(Value* a, Value* c, Value* d) const { return b_.fused_multiply_add(a, c, d); }
  Value* one(llvm::Intrinsic::ID id, Value* a) const { return ir_.CreateUnaryIntrinsic(id, a); }
  Value* magnitude(Value* a) const { return one(llvm::Intrinsic::fabs, a); }
  Value* root(Value* a) const { return one(llvm::Intrinsic::sqrt, a); }
  Value* with_sign(Value* a, Value* sign) const { return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a, sign); }
  Value* choose(Value* condition, Value* a, Value* c) const { return ir_.CreateSelect(condition, a, c); }
  Value* less(Value* a, Value* c) const { return ir_.CreateFCmpOLT(a, c); }
  Value* equal(Value* a, Value* c) const { return ir_.CreateFCmpOEQ(a, c); }
  Value* exp(Value* a) const { return is_double() ? exp_f64(b_, a) : codegen::emit_function(b_, P::exp, a, nullptr); }
  Value* log(Value* a) const { return is_double() ? log_f64(b_, a) : codegen::emit_function(b_, P::log, a, nullptr); }

  llvm::Type* integers() const {
    llvm::Type* word = ir_.getIntNTy(type_->getScalarSizeInBits());
    auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(type_);
    return lanes ? llvm::FixedVectorType::get(word, lanes->getNumElements()) : word;
  }
  Value* integer(std::int64_t v) const { return llvm::ConstantInt::get(integers(), static_cast<std::uint64_t>(v), true); }
  unsigned mantissa_bits() const { return is_double() ? 52 : 23; }
  std::int64_t bias() const { return is_double() ? 1023 : 127; }

  /// a * 2^n for whole n, in two steps, so that what is too small for one becomes subnormal.
  Value* times_power_of_two(Value* a, Value* n) const {
    Value* whole = ir_.CreateFPToSI(n, integers());
    Value* half = ir_.CreateAShr(whole, integer(1));
    const auto power = [&](Value* k) { return ir_.CreateBitCast(ir_.CreateShl(ir_.CreateAdd(k, integer(bias())), integer(mantissa_bits())), type_); };
    return mul(mul(a, power(half)), power(ir_.CreateSub(whole, half)));
  }

  /// a = m * 2^e with m in [sqrt(1/2), sqrt(2)), for positive finite a.
  std::pair<Value*, Value*> parts(Value* a) const {
    Value* subnormal = less(a, number(is_double() ? 0x1p-1022 : 0x1p-126));
    const int shift = is_double() ? 54 : 25;
    Value* scaled = choose(subnormal, mul(a, number(is_double() ? 0x1p54 : 0x1p25)), a);
    Value* bits = ir_.CreateBitCast(scaled, integers());
    const std::int64_t half_root = is_double() ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
    Value* exponent = ir_.CreateAShr(ir_.CreateSub(bits, integer(half_root)), integer(mantissa_bits()));
    Value* m = ir_.CreateBitCast(ir_.CreateSub(bits, ir_.CreateShl(exponent, integer(mantissa_bits()))), type_);
    return {m, sub(ir_.CreateSIToFP(exponent, type_), choose(subnormal, number(shift), number(0)))};
  }

  /// What log gives for 0, infinity and what has no logarithm.
  Value* with_limits_of_log(Value* a, Value* result) const {
    result = choose(equal(a, number(kInfinity)), a, result);
    result = choose(equal(a, number(0)), number(-kInfinity), result);
    return choose(ir_.CreateFCmpULT(a, number(0)), number(kNaN), result);
  }

  // ---- the functions

  Value* exp2(Value* x) const {
    const double most = is_double() ? 1025 : 129, least = is_double() ? -1080 : -155;
    Value* inside = choose(less(number(most), x), number(most), choose(less(x, number(least)), number(least), x));
    Value* n = one(llvm::Intrinsic::roundeven, inside);
    Value* power = times_power_of_two(exp(mul(sub(inside, n), number(std::numbers::ln2))), choose(ir_.CreateFCmpUNO(x, x), number(0), n));
    return choose(ir_.CreateFCmpUNO(x, x), x, power);
  }
  /// The error of exp(x) is that of its logarithm (Kahan).
  Value* expm1(Value* x) const {
    Value *u = exp(x), *v = sub(u, number(1));
    Value* result = mul(v, div(x, log(u)));
    result = choose(equal(v, number(-1)), number(-1), result);
    result = choose(equal(u, number(kInfinity)), u, result);
    return choose(equal(u, number(1)), x, result);
  }
  Value* log1p(Value* x) const {
    Value *u = add(number(1), x), *v = sub(u, number(1));
    Value* result = mul(log(u), div(x, v));
    result = choose(equal(u, number(kInfinity)), u, result);
    return choose(equal(u, number(1)), x, result);
  }
  /// Powers of two give whole numbers.
  Value* log2(Value* x) const {
    const auto [m, e] = parts(x);
    return with_limits_of_log(x, fma(log(m), number(std::numbers::log2e), e));
  }
  Value* log10(Value* x) const {
    const auto [m, e] = parts(x);
    // The first part of log10(2) has so few bits that its product with e is exact.
    const double first = is_double() ? 0x1.34413509ep-2 : 0x1.344p-2, rest = 0.30102999566398119521 - first;
    return with_limits_of_log(x, add(mul(e, number(first)), fma(log(m), number(std::numbers::log10e), mul(e, number(rest)))));
  }
  /// exp(|x|) / 2, also where exp(|x|) is too large.
  Value* half_exp(Value* magnitude) const {
    Value* root_of_it = exp(mul(magnitude, number(0.5)));
    return choose(less(magnitude, number(is_double() ? 700 : 85)), mul(exp(magnitude), number(0.5)), mul(mul(root_of_it, number(0.5)), root_of_it));
  }
  Value* sinh(Value* x) const {
    Value *a = magnitude(x), *e = expm1(a);
    Value* small = mul(number(0.5), add(e, div(e, add(e, number(1)))));
    return with_sign(choose(less(a, number(1)), small, sub(half_exp(a), div(number(0.25), half_exp(a)))), x);
  }
  Value* cosh(Value* x) const {
    Value* half = half_exp(magnitude(x));
    return add(half, div(number(0.25), half));
  }
  Value* tanh(Value* x) const {
    Value* a = magnitude(x);
    Value* e = expm1(mul(number(2), choose(less(number(22), a), number(22), a)));
    return with_sign(div(e, add(e, number(2))), x);
  }
  Value* asinh(Value* x) const {
    Value *a = magnitude(x), *square = mul(a, a), *large = number(is_double() ? 0x1p500 : 0x1p60);
    Value* near = log1p(add(a, div(square, add(number(1), root(add(square, number(1)))))));
    return with_sign(choose(less(large, a), add(log(a), number(std::numbers::ln2)), near), x);
  }
  Value* acosh(Value* x) const {
    Value* t = sub(x, number(1));
    Value* near = log1p(add(t, root(add(mul(number(2), t), mul(t, t)))));
    Value* result = choose(less(number(is_double() ? 0x1p500 : 0x1p60), x), add(log(x), number(std::numbers::ln2)), near);
    return choose(ir_.CreateFCmpULT(x, number(1)), number(kNaN), result);
  }
  Value* atanh(Value* x) const {
    Value* a = magnitude(x);
    Value* result = mul(number(0.5), log1p(div(mul(number(2), a), sub(number(1), a))));
    result = choose(equal(a, number(1)), number(kInfinity), result);
    return with_sign(choose(ir_.CreateFCmpUGT(a, number(1)), number(kNaN), result), x);
  }
  /// By the tangent of a difference: what is left is at most 7/16 (fdlibm, s_atan.c).
  Value* atan(Value* x) const {
    Value* a = magnitude(x);
    struct Part {
      double from, centre, angle;
    };
    Value *rest = a, *angle = number(0);
    for (const auto& [from, centre, centre_angle] : {Part{7.0 / 16, 0.5, 4.63647609000806093515e-01}, Part{11.0 / 16, 1, std::numbers::pi / 4}, Part{19.0 / 16, 1.5, 9.82793723247329054082e-01}}) {
      Value* here = ir_.CreateFCmpOGE(a, number(from));
      rest = choose(here, div(sub(a, number(centre)), fma(a, number(centre), number(1))), rest);
      angle = choose(here, number(centre_angle), angle);
    }
    Value* far = ir_.CreateFCmpOGE(a, number(39.0 / 16));
    rest = choose(far, div(number(-1), a), rest);
    angle = choose(far, number(std::numbers::pi / 2), angle);
    Value* z = mul(rest, rest);
    Value* p = codegen::polynomial(b_, z, {1.62858201153657823623e-02, -3.65315727442169155270e-02, 4.97687799461593236017e-02, -5.83357013379057348645e-02, 6.66107313738753120669e-02,
                                           -7.69187620504482999495e-02, 9.09088713343650656196e-02, -1.11111104054623557880e-01, 1.42857142725034663711e-01, -1.99999999998764832476e-01,
                                           3.33333333333329318027e-01});
    return with_sign(add(angle, fma(ir_.CreateFNeg(mul(rest, z)), p, rest)), x);
  }
  Value* asin(Value* x) const { return atan(div(x, root(mul(sub(number(1), x), add(number(1), x))))); }
  Value* acos(Value* x) const {
    Value *s = root(sub(number(1), x)), *c = root(add(number(1), x));
    return mul(number(2), atan(div(s, c)));
  }
  Value* atan2(Value* y, Value* x) const {
    Value *a = magnitude(y), *c = magnitude(x);
    Value* steep = less(c, a);
    Value *low = choose(steep, c, a), *high = choose(steep, a, c);
    Value* ratio = div(low, high);
    ratio = choose(equal(high, number(0)), number(0), ratio);
    ratio = choose(equal(low, number(kInfinity)), number(1), ratio);
    Value* angle = atan(ratio);
    angle = choose(steep, sub(number(std::numbers::pi / 2), angle), angle);
    Value* bits = ir_.CreateBitCast(x, integers());
    angle = choose(ir_.CreateICmpSLT(bits, integer(0)), sub(number(std::numbers::pi), angle), angle);
    return choose(ir_.CreateFCmpUNO(x, y), number(kNaN), with_sign(angle, y));
  }

 private:
  LaneBuilder& b_;
  llvm::IRBuilder<>& ir_;
  llvm::Type* type_;
};

llvm::Type* as_double(LaneBuilder& b, Value* x) {
  auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return lanes ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(b.ir.getDoubleTy(), lanes->getNumElements())) : b.ir.getDoubleTy();
}

}  // namespace

/// x = n ln2 + r, and Taylor's series on |r| <= ln2/2.
Value* exp_f64(LaneBuilder& b, Value* x) {
  const Formula f(b, x->getType());
  Value* inside = f.choose(f.less(f.number(710), x), f.number(710), f.choose(f.less(x, f.number(-746)), f.number(-746), x));
  Value* n = f.one(llvm::Intrinsic::roundeven, f.mul(inside, f.number(std::numbers::log2e)));
  Value* r = f.fma(n, f.number(-6.93147180369123816490e-01), inside);
  r = f.fma(n, f.number(-1.90821492927058770002e-10), r);
  Value* series = codegen::polynomial(b, r, {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5});
  Value* e = f.add(f.number(1), f.fma(series, f.mul(r, r), r));
  Value* is_nan = b.ir.CreateFCmpUNO(x, x);
  return f.choose(is_nan, x, f.times_power_of_two(e, f.choose(is_nan, f.number(0), n)));
}

/// fdlibm, e_log.c.
Value* log_f64(LaneBuilder& b, Value* x) {
  const Formula f(b, x->getType());
  const auto [m, e] = f.parts(x);
  Value* t = f.sub(m, f.number(1));
  Value *s = f.div(t, f.add(t, f.number(2))), *half = f.mul(f.number(0.5), f.mul(t, t));
  Value* z = f.mul(s, s);
  Value* r = f.mul(z, codegen::polynomial(b, z, {1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01, 2.857142874366239149e-01,
                                                 3.999999999940941908e-01, 6.666666666666735130e-01}));
  Value* low = f.fma(e, f.number(1.90821492927058770002e-10), f.mul(s, f.add(half, r)));
  return f.with_limits_of_log(x, f.fma(e, f.number(6.93147180369123816490e-01), f.sub(t, f.sub(half, low))));
}

Value* function_by_formula(LaneBuilder& b, P p, Value* x) {
  const Formula f(b, x->getType());
  switch (p) {
    case P::exp: return f.exp(x);
    case P::log: return f.log(x);
    case P::exp2: return f.exp2(x);
    case P::expm1: return f.expm1(x);
    case P::log2: return f.log2(x);
    case P::log10: return f.log10(x);
    case P::log1p: return f.log1p(x);
    case P::sinh: return f.sinh(x);
    case P::cosh: return f.cosh(x);
    case P::tanh: return f.tanh(x);
    case P::asinh: return f.asinh(x);
    case P::acosh: return f.acosh(x);
    case P::atanh: return f.atanh(x);
    case P::asin: return f.asin(x);
    case P::acos: return f.acos(x);
    case P::atan: return f.atan(x);
    default: return nullptr;
  }
}

Value* atan2_by_formula(LaneBuilder& b, Value* y, Value* x) { return Formula(b, x->getType()).atan2(y, x); }

/// W. H. Press et al., Numerical Recipes, erfcc; the square in the exponent in two parts, so that its rounding is not the result's.
Value* erfc_f32(LaneBuilder& b, Value* x) {
  const Formula f(b, x->getType());
  Value *a = f.magnitude(x), *t = f.div(f.number(1), f.fma(f.number(0.5), a, f.number(1)));
  Value* series = codegen::polynomial(b, t, {0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223});
  Value *square = f.mul(a, a), *rounding = f.fma(a, a, b.ir.CreateFNeg(square));
  Value* far = f.mul(f.mul(t, f.exp(series)), f.mul(f.exp(b.ir.CreateFNeg(square)), f.sub(f.number(1), rounding)));
  far = f.choose(f.less(f.number(12), a), f.number(0), far);
  return f.choose(f.less(x, f.number(0)), f.sub(f.number(2), far), far);
}

Value* pow_f32(LaneBuilder& b, Value* x, Value* y) {
  auto& ir = b.ir;
  const Formula f(b, x->getType()), g(b, as_double(b, x));
  Value* magnitude = ir.CreateFPExt(f.magnitude(x), as_double(b, x));
  Value* power = ir.CreateFPTrunc(g.exp(g.mul(ir.CreateFPExt(y, as_double(b, x)), g.log(magnitude))), x->getType());
  const auto is_whole = [&](Value* v) { return f.equal(f.one(llvm::Intrinsic::floor, v), v); };
  Value* whole = is_whole(y);
  Value* odd = ir.CreateAnd(whole, ir.CreateNot(is_whole(f.mul(y, f.number(0.5)))));
  Value* negative = ir.CreateICmpSLT(ir.CreateBitCast(x, f.integers()), f.integer(0));
  Value* result = f.choose(ir.CreateAnd(odd, negative), ir.CreateFNeg(power), power);
  Value* finite_negative = ir.CreateAnd(f.less(x, f.number(0)), ir.CreateFCmpONE(x, f.number(-kInfinity)));
  result = f.choose(ir.CreateAnd(finite_negative, ir.CreateNot(whole)), f.number(kNaN), result);
  Value* one = ir.CreateOr(ir.CreateAnd(f.equal(f.magnitude(x), f.number(1)), f.equal(f.magnitude(y), f.number(kInfinity))), ir.CreateOr(f.equal(x, f.number(1)), f.equal(y, f.number(0))));
  return f.choose(one, f.number(1), result);
}

/// Long division of mantissas, a bit a step: as many steps as the exponents differ (musl, fmod.c).
llvm::Function* fmod_function(LaneBuilder& b, llvm::Type* type) {
  const std::string name = type->isDoubleTy() ? "tenon_fmod_f64" : "tenon_fmod_f32";
  if (auto* known = b.module().getFunction(name)) return known;
  auto& ir = b.ir;
  const llvm::IRBuilder<>::InsertPointGuard guard(ir);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false), llvm::Function::InternalLinkage, name, b.module());
  b.isa().declare(*function);
  const Formula f(b, type);
  const unsigned bits = type->getScalarSizeInBits(), m = f.mantissa_bits();
  const auto block = [&](const char* what) { return llvm::BasicBlock::Create(ir.getContext(), what, function); };
  auto *entry = block("entry"), *divide = block("divide"), *head = block("head"), *step = block("step"), *done = block("done"), *itself = block("itself"), *invalid = block("invalid"), *known = block("known");
  ir.SetInsertPoint(entry);
  Value *x = function->getArg(0), *y = function->getArg(1);
  Value *a = f.magnitude(x), *c = f.magnitude(y), *infinity = f.number(kInfinity);
  Value* wrong = ir.CreateOr(ir.CreateFCmpUEQ(c, f.number(0)), ir.CreateFCmpUEQ(a, infinity));  // or a NaN
  ir.CreateCondBr(wrong, invalid, known);
  ir.SetInsertPoint(known);
  ir.CreateCondBr(f.less(a, c), itself, divide);
  ir.SetInsertPoint(divide);
  struct Mantissa {
    Value *value, *exponent;
  };
  const auto unused = static_cast<std::int64_t>(bits - 1 - m);  // zeros before the first bit of a mantissa
  const auto leading = [&](Value* v) { return ir.CreateIntrinsic(llvm::Intrinsic::ctlz, {f.integers()}, {v, ir.getFalse()}); };
  const auto split = [&](Value* v) -> Mantissa {
    Value *u = ir.CreateBitCast(v, f.integers()), *e = ir.CreateLShr(u, f.integer(m));
    Value* shift = ir.CreateSub(leading(u), f.integer(unused));
    Value* subnormal = ir.CreateICmpEQ(e, f.integer(0));
    Value* normal = ir.CreateOr(ir.CreateAnd(u, f.integer((std::int64_t{1} << m) - 1)), f.integer(std::int64_t{1} << m));
    return {ir.CreateSelect(subnormal, ir.CreateShl(u, shift), normal), ir.CreateSelect(subnormal, ir.CreateSub(f.integer(1), shift), e)};
  };
  const Mantissa of_x = split(a), of_y = split(c);
  const auto taken_away = [&](Value* v) {
    Value* d = ir.CreateSub(v, of_y.value);
    return ir.CreateSelect(ir.CreateICmpSGE(d, f.integer(0)), d, v);
  };
  ir.CreateBr(head);
  ir.SetInsertPoint(head);
  auto *rest = ir.CreatePHI(f.integers(), 2), *exponent = ir.CreatePHI(f.integers(), 2);
  rest->addIncoming(of_x.value, divide), exponent->addIncoming(of_x.exponent, divide);
  ir.CreateCondBr(ir.CreateICmpSGT(exponent, of_y.exponent), step, done);
  ir.SetInsertPoint(step);
  rest->addIncoming(ir.CreateShl(taken_away(rest), f.integer(1)), step);
  exponent->addIncoming(ir.CreateSub(exponent, f.integer(1)), step);
  ir.CreateBr(head);
  ir.SetInsertPoint(done);
  Value* last = taken_away(rest);
  Value* shift = ir.CreateSub(leading(last), f.integer(unused));
  Value *shifted = ir.CreateShl(last, ir.CreateSelect(ir.CreateICmpEQ(last, f.integer(0)), f.integer(0), shift)), *e = ir.CreateSub(of_y.exponent, shift);
  Value* normal = ir.CreateAdd(ir.CreateSub(shifted, f.integer(std::int64_t{1} << m)), ir.CreateShl(e, f.integer(m)));
  Value* is_normal = ir.CreateICmpSGT(e, f.integer(0));
  Value* subnormal = ir.CreateLShr(shifted, ir.CreateSelect(is_normal, f.integer(0), ir.CreateSub(f.integer(1), e)));
  Value* result = ir.CreateSelect(ir.CreateICmpEQ(last, f.integer(0)), f.integer(0), ir.CreateSelect(is_normal, normal, subnormal));
  ir.CreateRet(f.with_sign(ir.CreateBitCast(result, type), x));
  ir.SetInsertPoint(itself);
  ir.CreateRet(x);
  ir.SetInsertPoint(invalid);
  ir.CreateRet(f.number(kNaN));
  return function;
}

}  // namespace tenon::cuda
