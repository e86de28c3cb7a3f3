#include "isa/x86_isa.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "scalars/lane_builder.h"
#include "isa/library_functions.h"

namespace tenon::llvm_backend {

using namespace codegen;

using llvm::Value;
using Pred = llvm::CmpInst::Predicate;

void X86Isa::declare(llvm::Function& function) const { declare_for_machine(function, target_); }

Value* X86Isa::ordering(LaneBuilder& b, Pred predicate, Value* x, Value* y) const {
  auto& ir = b.ir;
  if (!target_.quiet_comparisons) return ir.CreateFCmp(predicate, x, y);
  // LLVM compares single values as whole vectors with AVX-512, and what lies beside them may be NaN.
  if (!x->getType()->isVectorTy()) return ir.CreateConstrainedFPCmp(llvm::Intrinsic::experimental_constrained_fcmp, predicate, x, y, "", llvm::fp::ebIgnore);
  Value* unordered = ir.CreateFCmpUNO(x, y);
  Value* zero = llvm::ConstantFP::get(x->getType(), 0.0);
  const Pred ordered = llvm::CmpInst::isUnordered(predicate) ? llvm::CmpInst::getOrderedPredicate(predicate) : predicate;
  Value* holds = ir.CreateFCmp(ordered, ir.CreateSelect(unordered, zero, x), ir.CreateSelect(unordered, zero, y));
  if (ordered != predicate) return ir.CreateOr(holds, unordered);
  return ordered == Pred::FCMP_OLT || ordered == Pred::FCMP_OGT ? holds : ir.CreateAnd(holds, ir.CreateNot(unordered));
}

Value* X86Isa::times_power_of_two(LaneBuilder& b, Value* v, Value* n) const {
  if (target_.vector_bytes != 64 || !v->getType()->isVectorTy()) return nullptr;
  return in_pieces(b, v, n, 16, [&](Value* piece, Value* power) {
    constexpr std::uint32_t kCurrentRounding = 4;
    return b.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {}, {piece, power, piece, b.ir.getInt16(0xffff), b.ir.getInt32(kCurrentRounding)});
  });
}

Value* X86Isa::function(LaneBuilder& b, ops::Primitive p, Value* x, Value* y) const { return library_function(b, target_, p, x, y); }

void declare_for_machine(llvm::Function& function, const Target& target) {
  function.addFnAttr("target-cpu", target.cpu);
  function.addFnAttr("target-features", target.features);
  if (target.vector_bytes == 64) function.addFnAttr("prefer-vector-width", "512");
  function.addFnAttr(llvm::Attribute::NoUnwind);
}

Value* multiply_added(llvm::IRBuilder<>& ir, const Target& target, bool pairs, Value* a, Value* b, Value* sum) {
  if (pairs) {
    auto* type = llvm::FixedVectorType::get(ir.getBFloatTy(), 32);
    return ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {}, {sum, ir.CreateBitCast(a, type), ir.CreateBitCast(b, type)});
  }
  if (target.has_fma) return ir.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {a, b, sum});
  return ir.CreateFAdd(sum, ir.CreateFMul(a, b));
}

void keep_order_of(llvm::Function& function) { function.addFnAttr("tune-cpu", "znver4"); }

}  // namespace tenon::llvm_backend
