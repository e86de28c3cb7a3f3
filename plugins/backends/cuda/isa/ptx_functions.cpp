#include "isa/ptx_functions.h"

#include <llvm/IR/Intrinsics.h>

#include "core/base/error.h"
#include "isa/float_functions.h"
#include "scalars/log_gamma.h"

namespace tenon::cuda {

using codegen::LaneBuilder;
using llvm::Value;
using P = ops::Primitive;

namespace {

/// erf in float32, about 1 ulp: an odd polynomial up to 475/512, else 1 - exp(-|x| - a polynomial of |x|), whose sign is x's.
Value* erf_f32(LaneBuilder& b, Value* x) {
  auto& ir = b.ir;
  constexpr double kNear = 0.927734375, kOne = 4;  // from kOne on the result rounds to 1
  Value* magnitude = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* t = ir.CreateSelect(ir.CreateFCmpOGT(magnitude, llvm::ConstantFP::get(x->getType(), kOne)), llvm::ConstantFP::get(x->getType(), kOne), magnitude);
  Value* p = codegen::polynomial(b, t, {-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1});
  Value* e = codegen::emit_function(b, P::exp, b.fused_multiply_add(p, t, ir.CreateFNeg(t)), nullptr);
  Value* far = ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, ir.CreateFSub(llvm::ConstantFP::get(x->getType(), 1.0), e), x);
  Value* near = b.fused_multiply_add(codegen::polynomial(b, ir.CreateFMul(x, x), {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1}), x, x);
  return ir.CreateSelect(ir.CreateFCmpOGT(magnitude, llvm::ConstantFP::get(x->getType(), kNear)), far, near);
}

/// 2/pi as a fraction of a full turn's quarter, 32 bits a word: of x times it, the two bits above the fraction are the quadrant. The last word is
/// never multiplied.
constexpr std::uint32_t kTwoOverPi[] = {0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410, 0};

/// Word `number` of the table, 0 before its first one.
Value* word(LaneBuilder& b, Value* number) {
  Value* found = b.ir.getInt32(0);
  for (std::uint32_t i = 0; i < std::size(kTwoOverPi); ++i) found = b.ir.CreateSelect(b.ir.CreateICmpEQ(number, b.ir.getInt32(i)), b.ir.getInt32(kTwoOverPi[i]), found);
  return found;
}

/// x as what is left of it between -pi/4 and pi/4, and the quadrant in the two lowest bits: by all bits of 2/pi that matter (Payne and Hanek,
/// SIGNUM Newsletter 18, 1983). For finite x of at least 1 in magnitude.
std::pair<Value*, Value*> reduced_exactly(LaneBuilder& b, Value* magnitude) {
  auto& ir = b.ir;
  const auto k = [&](std::uint32_t v) { return ir.getInt32(v); };
  const auto wide = [&](Value* v) { return ir.CreateZExt(v, ir.getInt64Ty()); };
  Value* bits = ir.CreateBitCast(magnitude, ir.getInt32Ty());
  Value* exponent = ir.CreateSub(ir.CreateLShr(bits, 23), k(126));
  Value* mantissa = ir.CreateOr(ir.CreateShl(bits, 8), k(0x80000000u));
  Value* first = ir.CreateLShr(exponent, 5);
  Value* shift = ir.CreateAnd(exponent, k(31));
  const auto shifted = [&](Value* high, Value* low) { return ir.CreateIntrinsic(llvm::Intrinsic::fshl, {ir.getInt32Ty()}, {high, low, shift}); };
  Value* words[4];
  for (std::uint32_t i = 0; i < 4; ++i) words[i] = word(b, ir.CreateAdd(first, k(i - 1)));
  Value *high = shifted(words[0], words[1]), *middle = shifted(words[1], words[2]), *low = shifted(words[2], words[3]);
  Value* product = ir.CreateMul(wide(mantissa), wide(low));
  product = ir.CreateAdd(ir.CreateMul(wide(mantissa), wide(middle)), ir.CreateLShr(product, 32));
  product = ir.CreateAdd(ir.CreateShl(wide(ir.CreateMul(mantissa, high)), 32), product);
  // Half a quadrant more, so that what is left has a sign.
  Value* quadrant = ir.CreateTrunc(ir.CreateLShr(ir.CreateAdd(product, ir.getInt64(1ull << 61)), 62), ir.getInt32Ty());
  Value* rest = ir.CreateSub(product, ir.CreateShl(wide(quadrant), 62));
  constexpr double kUnit = 0x1.921fb54442d18p-62;  // pi/2 / 2^62
  Value* radians = ir.CreateFMul(ir.CreateSIToFP(rest, ir.getDoubleTy()), llvm::ConstantFP::get(ir.getDoubleTy(), kUnit));
  return {ir.CreateFPTrunc(radians, ir.getFloatTy()), quadrant};
}

/// A function of the module, so that vectors may call it a lane at a time: it branches where the parts of pi/2 do not suffice.
llvm::Function* circular_of(LaneBuilder& b, P p) {
  const std::string name = std::string("tenon_") + ops::name_of(p);
  if (auto* known = b.module().getFunction(name)) return known;
  auto& ir = b.ir;
  const llvm::IRBuilder<>::InsertPointGuard guard(ir);
  llvm::Type* type = ir.getFloatTy();
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type}, false), llvm::Function::InternalLinkage, name, b.module());
  b.isa().declare(*function);
  Value* x = function->getArg(0);
  const auto block = [&](const char* what) { return llvm::BasicBlock::Create(ir.getContext(), what, function); };
  auto *entry = block("entry"), *near = block("near"), *far = block("far");
  const auto number = [&](double v) { return llvm::ConstantFP::get(type, v); };
  ir.SetInsertPoint(entry);
  Value* magnitude = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  ir.CreateCondBr(ir.CreateFCmpOGT(magnitude, number(codegen::kLargestTurned)), far, near);
  ir.SetInsertPoint(near);
  ir.CreateRet(codegen::circular_f32(b, p, x));
  ir.SetInsertPoint(far);
  const auto [left, quadrant] = reduced_exactly(b, magnitude);
  // Of what is left, which is no longer turned, the quadrant says what is taken of it and its sign.
  Value *sine = codegen::circular_f32(b, P::sin, left), *cosine = codegen::circular_f32(b, P::cos, left);
  Value* turn = p == P::cos ? ir.CreateAdd(quadrant, ir.getInt32(1)) : quadrant;
  Value* odd = ir.CreateICmpNE(ir.CreateAnd(turn, ir.getInt32(1)), ir.getInt32(0));
  Value* chosen = ir.CreateSelect(odd, cosine, sine);
  Value* minus = ir.CreateICmpNE(ir.CreateAnd(turn, ir.getInt32(2)), ir.getInt32(0));
  if (p == P::sin) minus = ir.CreateXor(minus, ir.CreateFCmpOLT(x, number(0.0)));
  Value* finite = ir.CreateFCmpOLT(magnitude, llvm::ConstantFP::getInfinity(type));
  ir.CreateRet(ir.CreateSelect(finite, ir.CreateSelect(minus, ir.CreateFNeg(chosen), chosen), llvm::ConstantFP::getNaN(type)));
  return function;
}

}  // namespace

bool is_function(P p) { return (p >= P::exp && p <= P::lgamma) || p == P::remainder || p == P::fmod; }

bool has_function(P p, DType dtype) {
  if (is_int(dtype) || dtype == DType::b8) return p != P::lgamma;  // integers have remainders and powers, and no functions
  if (dtype == DType::f32) return true;
  return dtype == DType::f64 && p != P::sin && p != P::cos && p != P::tan && p != P::erf && p != P::erfc && p != P::pow && p != P::lgamma;
}

namespace {

/// A function of the module, lane by lane.
Value* called(LaneBuilder& b, llvm::Function* function, std::initializer_list<Value*> arguments) {
  auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>((*arguments.begin())->getType());
  if (!lanes) return b.ir.CreateCall(function, llvm::ArrayRef(arguments.begin(), arguments.size()));
  Value* all = llvm::PoisonValue::get(lanes);
  for (std::uint64_t i = 0; i < lanes->getNumElements(); ++i) {
    llvm::SmallVector<Value*, 2> of_lane;
    for (Value* argument : arguments) of_lane.push_back(b.ir.CreateExtractElement(argument, i));
    all = b.ir.CreateInsertElement(all, b.ir.CreateCall(function, of_lane), i);
  }
  return all;
}

}  // namespace

Value* emit_ptx_function(LaneBuilder& b, P p, Value* x, Value* y) {
  switch (p) {
    case P::erf: return erf_f32(b, x);
    case P::erfc: return erfc_f32(b, x);
    case P::lgamma: return codegen::log_gamma_f32(b, x);
    case P::pow: return pow_f32(b, x, y);
    case P::atan2: return atan2_by_formula(b, x, y);
    case P::fmod: return called(b, fmod_function(b, x->getType()->getScalarType()), {x, y});
    case P::sin:
    case P::cos: return called(b, circular_of(b, p), {x});
    case P::tan: return b.ir.CreateFDiv(called(b, circular_of(b, P::sin), {x}), called(b, circular_of(b, P::cos), {x}));
    default: break;
  }
  Value* result = function_by_formula(b, p, x);
  TENON_CHECK(result, "{} has no code for this target", ops::name_of(p));
  return result;
}

}  // namespace tenon::cuda
