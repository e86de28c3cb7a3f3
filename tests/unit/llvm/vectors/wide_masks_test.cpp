// Masks as wide as what was compared: what the rewriting leaves is valid, and no logic on single bits.
#include "vectors/wide_masks.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include "catch.h"

using namespace tenon;
using llvm::Value;

namespace {

constexpr unsigned kLanes = 16;

/// A function of vectors (a, b) of an element type and of a place to write to.
struct Body {
  llvm::LLVMContext context;
  llvm::Module module{"test", context};
  llvm::IRBuilder<> ir{context};
  llvm::Function* function;
  Value *a, *b, *place;

  explicit Body(const std::function<llvm::Type*(llvm::IRBuilder<>&)>& element) {
    auto* type = llvm::FixedVectorType::get(element(ir), kLanes);
    function = llvm::Function::Create(llvm::FunctionType::get(ir.getVoidTy(), {type, type, ir.getPtrTy()}, false), llvm::Function::ExternalLinkage, "f", module);
    ir.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
    a = function->getArg(0), b = function->getArg(1), place = function->getArg(2);
  }

  /// Ends the function and widens its masks. True where no logic on vectors of bits is left.
  bool widened() {
    ir.CreateRetVoid();
    llvm_backend::widen_masks(*function);
    REQUIRE_FALSE(llvm::verifyModule(module, nullptr));
    return std::none_of(llvm::inst_begin(function), llvm::inst_end(function), [](const llvm::Instruction& i) {
      return i.getType()->isVectorTy() && i.getType()->isIntOrIntVectorTy(1) && !llvm::isa<llvm::CmpInst>(i);
    });
  }
};

llvm::Type* f32(llvm::IRBuilder<>& ir) { return ir.getFloatTy(); }
llvm::Type* f64(llvm::IRBuilder<>& ir) { return ir.getDoubleTy(); }
llvm::Type* i8(llvm::IRBuilder<>& ir) { return ir.getInt8Ty(); }

}  // namespace

TEST_CASE("logic on comparisons is widened, however masks are combined", "[masks]") {
  for (const auto element : {f32, f64}) {
    Body body(element);
    auto& ir = body.ir;
    Value *less = ir.CreateFCmpOLT(body.a, body.b), *is_nan = ir.CreateFCmpUNO(body.a, body.a);
    Value* either = ir.CreateOr(less, ir.CreateNot(is_nan));
    Value* chosen = ir.CreateSelect(either, ir.CreateXor(less, is_nan), ir.CreateAnd(less, is_nan));
    ir.CreateStore(ir.CreateSelect(chosen, body.a, body.b), body.place);
    CHECK(body.widened());
  }
}

TEST_CASE("a mask that a loop carries is widened", "[masks]") {
  Body body(f32);
  auto& ir = body.ir;
  auto *entry = ir.GetInsertBlock(), *loop = llvm::BasicBlock::Create(body.context, "loop", body.function), *rest = llvm::BasicBlock::Create(body.context, "rest", body.function);
  Value* less = ir.CreateFCmpOLT(body.a, body.b);
  ir.CreateBr(loop);
  ir.SetInsertPoint(loop);
  auto* any = ir.CreatePHI(less->getType(), 2);
  Value* next = ir.CreateOr(any, ir.CreateFCmpOGT(body.a, ir.CreateLoad(body.a->getType(), body.place)));
  any->addIncoming(llvm::Constant::getNullValue(less->getType()), entry), any->addIncoming(next, loop);
  ir.CreateCondBr(ir.CreateOrReduce(next), rest, loop);
  ir.SetInsertPoint(rest);
  ir.CreateStore(ir.CreateSelect(next, body.a, body.b), body.place);
  CHECK(body.widened());
}

TEST_CASE("masks of bytes stay as they are", "[masks]") {
  Body body(i8);
  auto& ir = body.ir;
  Value* both = ir.CreateAnd(ir.CreateICmpULT(body.a, body.b), ir.CreateICmpNE(body.a, llvm::Constant::getNullValue(body.a->getType())));
  ir.CreateStore(ir.CreateSelect(both, body.a, body.b), body.place);
  CHECK_FALSE(body.widened());
}
