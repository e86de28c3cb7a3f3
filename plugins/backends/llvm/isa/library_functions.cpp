#include "isa/library_functions.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cmath>

#include "scalars/functions.h"
#include "scalars/log_gamma.h"
#include "isa/x86_isa.h"

namespace tenon::llvm_backend {

using namespace codegen;

using llvm::Value;
using P = ops::Primitive;

namespace {

Value* number_like(Value* like, double v) { return llvm::ConstantFP::get(like->getType(), v); }

Value* whole_like(Value* like, std::int64_t v) { return llvm::ConstantInt::get(like->getType(), static_cast<std::uint64_t>(v), true); }

Value* shuffled(LaneBuilder& b, Value* v, unsigned first, unsigned count) {
  const unsigned width = llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements();
  llvm::SmallVector<int, 64> mask;
  for (unsigned i = 0; i < count; ++i) mask.push_back(static_cast<int>(std::min(first + i, width - 1)));
  return b.ir.CreateShuffleVector(v, mask);
}

}  // namespace

Value* in_pieces(LaneBuilder& b, Value* x, Value* y, unsigned width, const std::function<Value*(Value* x, Value* y)>& call) {
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

std::string routine_name(P p, bool is_double) { return std::string("tenon_") + ops::name_of(p) + (is_double ? "_f64" : "_f32"); }

namespace {

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

Value* vector_library_call(LaneBuilder& b, const Target& target, P p, Value* x, Value* y) {
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  const unsigned bytes = target.vector_bytes;
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

/// The module's function for vectors of a whole register. It branches, which code in the middle of a loop's body must not: where a lane is
/// too large for the parts of pi/2, or infinite, all go to the library.
llvm::Function* circular_function(LaneBuilder& b, const Target& target, P p) {
  const std::string name = std::string("circular_") + ops::name_of(p);
  if (auto* known = b.module().getFunction(name)) return known;
  auto& ir = b.ir;
  const llvm::IRBuilder<>::InsertPointGuard guard(ir);
  llvm::Type* type = llvm::FixedVectorType::get(ir.getFloatTy(), target.lanes());
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type}, false), llvm::Function::InternalLinkage, name, b.module());
  declare_for_machine(*function, target);
  Value* x = function->getArg(0);
  auto block = [&](const char* what) { return llvm::BasicBlock::Create(ir.getContext(), what, function); };
  auto *entry = block("entry"), *near = block("near"), *far = block("far");
  ir.SetInsertPoint(entry);
  Value* large = b.float_compare(llvm::CmpInst::FCMP_OGT, ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x), number_like(x, kLargestTurned));
  ir.CreateCondBr(ir.CreateOrReduce(large), far, near);
  ir.SetInsertPoint(near);
  ir.CreateRet(circular_f32(b, p, x));
  ir.SetInsertPoint(far);
  ir.CreateRet(target.vector_functions ? vector_library_call(b, target, p, x, nullptr) : routine_call(b, p, x, nullptr));
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
  Value* far = ir.CreateICmpSGE(ir.CreateSub(ex, ey), whole_like(ex, fraction));
  far = ir.CreateOr(far, ir.CreateICmpEQ(ex, whole_like(ex, largest)));
  return ir.CreateOr(far, ir.CreateICmpEQ(ey, whole_like(ey, 0)));  // a divisor that is zero, or so small that its exponent does not say how small
}

/// x - trunc(x / y) * y of vectors, which is exact: the rounded quotient is the whole number wanted or the next one, and of both the rest is a
/// number of the dtype. Where a lane is far from that all go to the library.
llvm::Function* modulo_function(LaneBuilder& b, const Target& target, llvm::Type* type) {
  const std::string name = type->getScalarType()->isDoubleTy() ? "modulo_f64" : "modulo_f32";
  if (auto* known = b.module().getFunction(name)) return known;
  auto& ir = b.ir;
  const llvm::IRBuilder<>::InsertPointGuard guard(ir);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false), llvm::Function::InternalLinkage, name, b.module());
  declare_for_machine(*function, target);
  Value *x = function->getArg(0), *y = function->getArg(1);
  auto block = [&](const char* what) { return llvm::BasicBlock::Create(ir.getContext(), what, function); };
  auto *entry = block("entry"), *near = block("near"), *far = block("far");
  ir.SetInsertPoint(entry);
  ir.CreateCondBr(ir.CreateOrReduce(is_far_quotient(b, x, y)), far, near);
  ir.SetInsertPoint(near);
  const auto magnitude = [&](Value* v) { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  Value* itself = b.float_compare(llvm::CmpInst::FCMP_OLT, magnitude(x), magnitude(y));  // also of an infinite y, by which nothing is multiplied
  Value* dividend = ir.CreateSelect(itself, number_like(x, 0.0), x);
  Value* divisor = ir.CreateSelect(itself, number_like(y, 1.0), y);
  Value* quotient = ir.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, ir.CreateFDiv(dividend, divisor));
  Value* rest = b.fused_multiply_add(ir.CreateFNeg(quotient), divisor, dividend);
  Value* beyond = b.float_compare(llvm::CmpInst::FCMP_OLT, ir.CreateFMul(ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, number_like(x, 1.0), x), rest), number_like(x, 0.0));
  rest = ir.CreateSelect(beyond, ir.CreateFAdd(rest, ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, divisor, x)), rest);
  ir.CreateRet(ir.CreateSelect(itself, x, ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rest, x)));
  ir.SetInsertPoint(far);
  ir.CreateRet(routine_call(b, P::fmod, x, y));
  return function;
}

/// x to the power of y, of the magnitude of x: of negative numbers the library's function for vectors computes one after the other. Odd powers have the sign of x;
/// a power of a negative number that is no whole one is the root of a negative number, which raises what it should.
Value* power(LaneBuilder& b, const Target& target, Value* x, Value* y) {
  using Compare = llvm::CmpInst;
  auto& ir = b.ir;
  const auto magnitude = [&](Value* v) { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  const auto is_whole = [&](Value* v) { return b.float_compare(Compare::FCMP_OEQ, ir.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, v), v); };
  Value* result = vector_library_call(b, target, P::pow, magnitude(x), y);
  Value* whole = is_whole(y);
  Value* half = ir.CreateFMul(ir.CreateSelect(whole, y, number_like(y, 0.0)), number_like(y, 0.5));
  result = ir.CreateSelect(is_whole(half), result, ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x));
  Value* negative = b.float_compare(Compare::FCMP_OLT, x, number_like(x, 0.0));
  result = ir.CreateSelect(ir.CreateAnd(negative, b.float_compare(Compare::FCMP_UNO, y, y)), y, result);  // of -1 too
  Value* finite = b.float_compare(Compare::FCMP_ONE, magnitude(x), number_like(x, HUGE_VAL));
  Value* none = ir.CreateAnd(ir.CreateAnd(negative, finite), b.float_compare(Compare::FCMP_ONE, ir.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, y), y));
  return ir.CreateSelect(none, ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, ir.CreateSelect(none, x, number_like(x, 1.0))), result);
}

}  // namespace

Value* library_function(LaneBuilder& b, const Target& target, P p, Value* x, Value* y) {
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  if (p == P::lgamma && !is_double && target.vector_functions) return log_gamma_f32(b, x);
  if ((p == P::sin || p == P::cos) && !is_double && target.has_fma) {
    llvm::Function* function = circular_function(b, target, p);
    return in_pieces(b, x, nullptr, target.lanes(), [&](Value* piece, Value*) { return b.ir.CreateCall(function, {piece}); });
  }
  if (p == P::fmod && target.has_fma) {
    const unsigned lanes = target.lanes() / (is_double ? 2 : 1);
    llvm::Function* function = modulo_function(b, target, llvm::FixedVectorType::get(x->getType()->getScalarType(), lanes));
    return in_pieces(b, x, y, lanes, [&](Value* px, Value* py) { return b.ir.CreateCall(function, {px, py}); });
  }
  if (target.vector_functions && p == P::pow) return power(b, target, x, y);
  if (target.vector_functions && library_name(p)) return vector_library_call(b, target, p, x, y);
  return routine_call(b, p, x, y);
}

}  // namespace tenon::llvm_backend
