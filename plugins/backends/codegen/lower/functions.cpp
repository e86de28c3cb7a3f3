// Exponential and trigonometric functions: own polynomials where they are faster and as exact, else glibc's libmvec (at most 4 ulp),
// else a routine that calls the C library for each lane.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/base/error.h"
#include "lower/lane_builder.h"
#include "lower/log_gamma.h"

namespace tenon::codegen {

using llvm::Value;
using P = ops::Primitive;

namespace {

/// The polynomial with the highest coefficient first, by Horner's rule.
Value* polynomial(LaneBuilder& b, Value* x, std::initializer_list<double> coefficients) {
  Value* sum = nullptr;
  for (double c : coefficients) {
    Value* k = llvm::ConstantFP::get(x->getType(), c);
    sum = sum ? b.fused_multiply_add(sum, x, k) : k;
  }
  return sum;
}

Value* real(Value* like, double v) { return llvm::ConstantFP::get(like->getType(), v); }

/// Keeps NaN: the comparison is false for it.
Value* at_most(LaneBuilder& b, Value* x, double limit) { return b.ir.CreateSelect(b.float_compare(llvm::CmpInst::FCMP_OGT, x, real(x, limit)), real(x, limit), x); }

llvm::Type* int_type_like(LaneBuilder& b, Value* x) {
  llvm::Type* element = b.ir.getInt32Ty();
  if (auto* v = llvm::dyn_cast<llvm::FixedVectorType>(x->getType())) return llvm::FixedVectorType::get(element, v->getNumElements());
  return element;
}

Value* int_like(Value* like, std::int64_t v) { return llvm::ConstantInt::get(like->getType(), static_cast<std::uint64_t>(v), true); }

Value* shuffled(LaneBuilder& b, Value* v, unsigned first, unsigned count) {
  const unsigned width = llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements();
  llvm::SmallVector<int, 64> mask;
  for (unsigned i = 0; i < count; ++i) mask.push_back(static_cast<int>(std::min(first + i, width - 1)));
  return b.ir.CreateShuffleVector(v, mask);
}

/// Applies a function of `width` lanes to a value of any number of lanes; lanes past the end repeat the last one.
template <class Call>
Value* in_pieces(LaneBuilder& b, Value* x, Value* y, unsigned width, Call call) {
  if (!x->getType()->isVectorTy()) {
    Value* wide_y = y ? b.ir.CreateVectorSplat(width, y) : nullptr;
    return b.ir.CreateExtractElement(call(b.ir.CreateVectorSplat(width, x), wide_y), std::uint64_t{0});
  }
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
  if (lanes == width) return call(x, y);
  llvm::SmallVector<Value*, 8> pieces;
  for (unsigned first = 0; first < lanes; first += width)
    pieces.push_back(call(shuffled(b, x, first, width), y ? shuffled(b, y, first, width) : nullptr));
  if (lanes < width) return shuffled(b, pieces[0], 0, lanes);
  while (pieces.size() > 1) {
    llvm::SmallVector<Value*, 8> joined;
    for (std::size_t i = 0; i + 1 < pieces.size(); i += 2) {
      const unsigned n = llvm::cast<llvm::FixedVectorType>(pieces[i]->getType())->getNumElements();
      llvm::SmallVector<int, 64> mask;
      for (unsigned k = 0; k < 2 * n; ++k) mask.push_back(static_cast<int>(k));
      joined.push_back(b.ir.CreateShuffleVector(pieces[i], pieces[i + 1], mask));
    }
    pieces = std::move(joined);
  }
  return pieces[0];
}

/// 2^n as a float32, for n in [-126, 127].
Value* power_of_two(LaneBuilder& b, Value* n, llvm::Type* type) {
  return b.ir.CreateBitCast(b.ir.CreateShl(b.ir.CreateAdd(n, int_like(n, 127)), 23), type);
}

/// v * 2^n for whole n in [-254, 254], rounded once; in one step where n is `normal`: in [-126, 127].
Value* times_power_of_two(LaneBuilder& b, Value* v, Value* n, bool normal = false) {
  if (b.target().vector_bytes == 64 && v->getType()->isVectorTy())
    return in_pieces(b, v, n, 16, [&](Value* piece, Value* power) {
      constexpr std::uint32_t kCurrentRounding = 4;
      return b.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {}, {piece, power, piece, b.ir.getInt16(0xffff), b.ir.getInt32(kCurrentRounding)});
    });
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
  const bool quiet = b.target().quiet_comparisons;  // a NaN made an integer, the exponent, would set a flag, as would an infinity
  Value* itself = quiet ? b.ir.CreateFCmpUEQ(x0, real(x0, std::numeric_limits<double>::infinity())) : nullptr;
  if (quiet) x = b.ir.CreateSelect(itself, real(x0, 0.0), x);
  const auto [e, n] = scaled_exponential(b, x);
  Value* result = b.ir.CreateSelect(vanishes, real(x0, 0.0), times_power_of_two(b, e, n));
  return quiet ? b.ir.CreateSelect(itself, x0, result) : result;
}

/// exp in float32 of what lies in [-87, 88] or is NaN.
Value* bounded_exp_f32(LaneBuilder& b, Value* x) {
  if (b.target().quiet_comparisons) return exp_f32(b, x);  // which makes no integer of a NaN
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

/// The C library's name for a primitive, without the f of float32.
const char* library_name(P p) {
  switch (p) {
    case P::exp: return "exp";
    case P::exp2: return "exp2";
    case P::expm1: return "expm1";
    case P::log: return "log";
    case P::log2: return "log2";
    case P::log10: return "log10";
    case P::log1p: return "log1p";
    case P::pow: return "pow";
    case P::sin: return "sin";
    case P::cos: return "cos";
    case P::tan: return "tan";
    case P::asin: return "asin";
    case P::acos: return "acos";
    case P::atan: return "atan";
    case P::atan2: return "atan2";
    case P::sinh: return "sinh";
    case P::cosh: return "cosh";
    case P::tanh: return "tanh";
    case P::asinh: return "asinh";
    case P::acosh: return "acosh";
    case P::atanh: return "atanh";
    case P::erf: return "erf";
    case P::erfc: return "erfc";
    default: return nullptr;
  }
}

Value* vector_library_call(LaneBuilder& b, P p, Value* x, Value* y) {
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  const unsigned bytes = b.target().vector_bytes;
  const unsigned width = bytes / (is_double ? 8 : 4);
  const char isa = bytes == 64 ? 'e' : bytes == 32 ? 'd' : 'b';
  const std::string name = std::string("_ZGV") + isa + "N" + std::to_string(width) + (y ? "vv_" : "v_") + library_name(p) + (is_double ? "" : "f");
  auto* type = llvm::FixedVectorType::get(x->getType()->getScalarType(), width);
  auto* signature = y ? llvm::FunctionType::get(type, {type, type}, false) : llvm::FunctionType::get(type, {type}, false);
  llvm::FunctionCallee callee = b.module().getOrInsertFunction(name, signature);
  return in_pieces(b, x, y, width, [&](Value* px, Value* py) {
    return py ? b.ir.CreateCall(callee, {px, py}) : b.ir.CreateCall(callee, {px});
  });
}

/// Calls routine(result, x, y, count) on the stack.
Value* routine_call(LaneBuilder& b, P p, Value* x, Value* y) {
  auto& ir = b.ir;
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  llvm::Type* pointer = ir.getPtrTy();
  auto* signature = llvm::FunctionType::get(ir.getVoidTy(), {pointer, pointer, pointer, ir.getInt64Ty()}, false);
  llvm::FunctionCallee callee = b.module().getOrInsertFunction(routine_name(p, is_double), signature);
  auto* function = ir.GetInsertBlock()->getParent();
  llvm::IRBuilder<> entry(&function->getEntryBlock(), function->getEntryBlock().begin());
  auto slot = [&](Value* v) {
    llvm::AllocaInst* memory = entry.CreateAlloca(x->getType());
    memory->setAlignment(llvm::Align(64));
    if (v) ir.CreateStore(v, memory);
    return memory;
  };
  auto* result = slot(nullptr);
  auto* from = slot(x);
  Value* second = y ? static_cast<Value*>(slot(y)) : llvm::ConstantPointerNull::get(ir.getPtrTy());
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  ir.CreateCall(callee, {result, from, second, ir.getInt64(vector ? vector->getNumElements() : 1)});
  return ir.CreateLoad(x->getType(), result);
}

/// sin or cos in float32, about 1 ulp, of magnitudes up to kLargestTurned: x = n pi/2 + r with pi/2 in three parts, of which the first
/// leaves no rounding error in a fused multiply-add; polynomials on |r| <= pi/4 (Cephes sinf and cosf); n modulo 4 says which and its sign.
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

constexpr double kLargestTurned = 131072.0;

/// The module's function for vectors of a whole register. It branches, which code in the middle of a loop's body must not: where a lane is
/// too large for the parts of pi/2, or infinite, all go to the library.
llvm::Function* circular_function(LaneBuilder& b, P p) {
  const std::string name = std::string("circular_") + ops::name_of(p);
  if (auto* known = b.module().getFunction(name)) return known;
  auto& ir = b.ir;
  const llvm::IRBuilder<>::InsertPointGuard guard(ir);
  llvm::Type* type = llvm::FixedVectorType::get(ir.getFloatTy(), b.target().lanes());
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type}, false), llvm::Function::InternalLinkage, name, b.module());
  declare_for_machine(*function, b.target());
  Value* x = function->getArg(0);
  auto block = [&](const char* what) { return llvm::BasicBlock::Create(ir.getContext(), what, function); };
  auto *entry = block("entry"), *near = block("near"), *far = block("far");
  ir.SetInsertPoint(entry);
  Value* large = b.float_compare(llvm::CmpInst::FCMP_OGT, ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x), real(x, kLargestTurned));
  ir.CreateCondBr(ir.CreateOrReduce(large), far, near);
  ir.SetInsertPoint(near);
  ir.CreateRet(circular_f32(b, p, x));
  ir.SetInsertPoint(far);
  ir.CreateRet(b.target().vector_functions ? vector_library_call(b, p, x, nullptr) : routine_call(b, p, x, nullptr));
  return function;
}

/// Whether the library is to compute a modulo b: the quotient is no whole number that the dtype holds, or there is none.
Value* is_far_quotient(LaneBuilder& b, Value* x, Value* y) {
  auto& ir = b.ir;
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  const int fraction = is_double ? 52 : 23;
  llvm::Type* type = llvm::FixedVectorType::get(is_double ? ir.getInt64Ty() : ir.getInt32Ty(), llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
  const std::int64_t largest = is_double ? 0x7ff : 0xff;
  const auto exponent = [&](Value* v) { return ir.CreateAnd(ir.CreateLShr(ir.CreateBitCast(v, type), fraction), llvm::ConstantInt::get(type, static_cast<std::uint64_t>(largest))); };
  Value *ex = exponent(x), *ey = exponent(y);
  Value* far = ir.CreateICmpSGE(ir.CreateSub(ex, ey), int_like(ex, fraction));
  far = ir.CreateOr(far, ir.CreateICmpEQ(ex, int_like(ex, largest)));
  return ir.CreateOr(far, ir.CreateICmpEQ(ey, int_like(ey, 0)));  // a divisor that is zero, or so small that its exponent does not say how small
}

/// x - trunc(x / y) * y of vectors, which is exact: the rounded quotient is the whole number wanted or the next one, and of both the rest is a
/// number of the dtype. Where a lane is far from that all go to the library.
llvm::Function* modulo_function(LaneBuilder& b, llvm::Type* type) {
  const std::string name = type->getScalarType()->isDoubleTy() ? "modulo_f64" : "modulo_f32";
  if (auto* known = b.module().getFunction(name)) return known;
  auto& ir = b.ir;
  const llvm::IRBuilder<>::InsertPointGuard guard(ir);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false), llvm::Function::InternalLinkage, name, b.module());
  declare_for_machine(*function, b.target());
  Value *x = function->getArg(0), *y = function->getArg(1);
  auto block = [&](const char* what) { return llvm::BasicBlock::Create(ir.getContext(), what, function); };
  auto *entry = block("entry"), *near = block("near"), *far = block("far");
  ir.SetInsertPoint(entry);
  ir.CreateCondBr(ir.CreateOrReduce(is_far_quotient(b, x, y)), far, near);
  ir.SetInsertPoint(near);
  const auto magnitude = [&](Value* v) { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  Value* itself = b.float_compare(llvm::CmpInst::FCMP_OLT, magnitude(x), magnitude(y));  // also of an infinite y, by which nothing is multiplied
  Value* dividend = ir.CreateSelect(itself, real(x, 0.0), x);
  Value* divisor = ir.CreateSelect(itself, real(y, 1.0), y);
  Value* quotient = ir.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, ir.CreateFDiv(dividend, divisor));
  Value* rest = b.fused_multiply_add(ir.CreateFNeg(quotient), divisor, dividend);
  Value* beyond = b.float_compare(llvm::CmpInst::FCMP_OLT, ir.CreateFMul(ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, real(x, 1.0), x), rest), real(x, 0.0));
  rest = ir.CreateSelect(beyond, ir.CreateFAdd(rest, ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, divisor, x)), rest);
  ir.CreateRet(ir.CreateSelect(itself, x, ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rest, x)));
  ir.SetInsertPoint(far);
  ir.CreateRet(routine_call(b, P::fmod, x, y));
  return function;
}

}  // namespace

void declare_for_machine(llvm::Function& function, const Target& target) {
  function.addFnAttr("target-cpu", target.cpu);
  function.addFnAttr("target-features", target.features);
  if (target.vector_bytes == 64) function.addFnAttr("prefer-vector-width", "512");
  function.addFnAttr(llvm::Attribute::NoUnwind);
}

void keep_order_of(llvm::Function& function) { function.addFnAttr("tune-cpu", "znver4"); }

std::string routine_name(P p, bool is_double) { return std::string("tenon_") + ops::name_of(p) + (is_double ? "_f64" : "_f32"); }

Value* LaneBuilder::fused_multiply_add(Value* a, Value* b, Value* c) {
  if (target_.has_fma) return ir.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  return ir.CreateFAdd(ir.CreateFMul(a, b), c);
}

Value* emit_function(LaneBuilder& b, P p, Value* x, Value* y) {
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  if (!is_double) {
    if (p == P::exp) return exp_f32(b, x);
    if (p == P::log) return log_f32(b, x);
    if (p == P::tanh) return tanh_f32(b, x);
    if (p == P::lgamma && b.target().vector_functions) return log_gamma_f32(b, x);
    if ((p == P::sin || p == P::cos) && b.target().has_fma) {
      llvm::Function* function = circular_function(b, p);
      return in_pieces(b, x, nullptr, b.target().lanes(), [&](Value* piece, Value*) { return b.ir.CreateCall(function, {piece}); });
    }
  }
  if (p == P::fmod && b.target().has_fma) {
    const unsigned lanes = b.target().lanes() / (is_double ? 2 : 1);
    llvm::Function* function = modulo_function(b, llvm::FixedVectorType::get(x->getType()->getScalarType(), lanes));
    return in_pieces(b, x, y, lanes, [&](Value* px, Value* py) { return b.ir.CreateCall(function, {px, py}); });
  }
  if (b.target().vector_functions && library_name(p)) return vector_library_call(b, p, x, y);
  return routine_call(b, p, x, y);
}

}  // namespace tenon::codegen
