// Sums of products in float64: fused where the product is exact, and only there.
#include "scalars/exact_sum.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include "catch.h"

using namespace tenon;
using llvm::Value;

namespace {

/// A function of two numbers of a type, to put instructions into.
struct Body {
  llvm::LLVMContext context;
  llvm::Module module{"test", context};
  llvm::IRBuilder<> ir{context};
  Value *x, *y, *total;

  explicit Body(bool narrow) {
    auto* type = narrow ? ir.getFloatTy() : ir.getDoubleTy();
    auto* function = llvm::Function::Create(llvm::FunctionType::get(ir.getVoidTy(), {type, type, ir.getDoubleTy()}, false), llvm::Function::ExternalLinkage, "f", module);
    ir.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
    x = ir.CreateFPCast(function->getArg(0), ir.getDoubleTy()), y = ir.CreateFPCast(function->getArg(1), ir.getDoubleTy());
    total = function->getArg(2);
  }
};

bool is_fused(Value* v) {
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(v);
  return call && call->getIntrinsicID() == llvm::Intrinsic::fma;
}

}  // namespace

TEST_CASE("a sum takes an exact product as it is", "[exact_sum]") {
  Body body(true);
  auto& ir = body.ir;
  CHECK(is_fused(codegen::emit_sum(ir, body.total, ir.CreateFMul(body.x, body.y), true)));
  CHECK(is_fused(codegen::emit_sum(ir, ir.CreateFMul(body.x, body.x), body.total, true)));
  CHECK_FALSE(is_fused(codegen::emit_sum(ir, body.total, ir.CreateFMul(body.x, body.y), false)));
  CHECK_FALSE(is_fused(codegen::emit_sum(ir, body.total, body.x, true)));
}

TEST_CASE("a sum rounds a product that needs it first", "[exact_sum]") {
  Body body(false);
  auto& ir = body.ir;
  CHECK_FALSE(is_fused(codegen::emit_sum(ir, body.total, ir.CreateFMul(body.x, body.y), true)));
  Body mixed(true);
  CHECK_FALSE(is_fused(codegen::emit_sum(mixed.ir, mixed.total, mixed.ir.CreateFMul(mixed.x, mixed.total), true)));
}
