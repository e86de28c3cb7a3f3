#include "scalars/exact_sum.h"

#include <llvm/IR/Intrinsics.h>

#include <utility>

namespace tenon::codegen {

using llvm::Value;

namespace {

bool is_widened(Value* v) { return llvm::isa<llvm::FPExtInst>(v) && v->getType()->getScalarType()->isDoubleTy(); }

/// The product, when it is exact.
llvm::BinaryOperator* exact_product(Value* v) {
  auto* product = llvm::dyn_cast<llvm::BinaryOperator>(v);
  const bool exact = product && product->getOpcode() == llvm::Instruction::FMul && is_widened(product->getOperand(0)) && is_widened(product->getOperand(1));
  return exact ? product : nullptr;
}

}  // namespace

Value* emit_sum(llvm::IRBuilder<>& ir, Value* a, Value* b, bool has_fma) {
  if (has_fma && !exact_product(b)) std::swap(a, b);
  auto* product = has_fma ? exact_product(b) : nullptr;
  if (!product) return ir.CreateFAdd(a, b);
  return ir.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {product->getOperand(0), product->getOperand(1), a});
}

}  // namespace tenon::codegen
