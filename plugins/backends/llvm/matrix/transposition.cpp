#include "matrix/transposition.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <vector>

#include "isa/x86_isa.h"

namespace tenon::llvm_backend {

using llvm::Value;

int transposed_rows(const Target& target, DType dtype) { return static_cast<int>(target.vector_bytes / size_of(dtype)); }

namespace {

/// Exchanges the halves of ever smaller squares between pairs of rows.
void transpose_in_registers(llvm::IRBuilder<>& ir, std::vector<Value*>& rows) {
  const int lanes = static_cast<int>(rows.size());
  for (int half = lanes / 2; half > 0; half /= 2) {
    llvm::SmallVector<int, 16> low, high;
    for (int l = 0; l < lanes; ++l) {
      const bool second = (l & half) != 0;
      low.push_back(second ? lanes + l - half : l);
      high.push_back(second ? lanes + l : l + half);
    }
    for (int i = 0; i < lanes; ++i) {
      if (i & half) continue;
      auto &a = rows[static_cast<std::size_t>(i)], &b = rows[static_cast<std::size_t>(i + half)];
      Value* first = ir.CreateShuffleVector(a, b, low);
      b = ir.CreateShuffleVector(a, b, high);
      a = first;
    }
  }
}

/// A loop from 0 to `end`.
template <class Body>
void each(llvm::IRBuilder<>& ir, Value* end, std::uint64_t step, Body body) {
  auto* function = ir.GetInsertBlock()->getParent();
  auto block = [&](const char* what) { return llvm::BasicBlock::Create(ir.getContext(), what, function); };
  auto *before = ir.GetInsertBlock(), *head = block("head"), *inside = block("body"), *after = block("after");
  ir.CreateBr(head);
  ir.SetInsertPoint(head);
  auto* i = ir.CreatePHI(ir.getInt64Ty(), 2);
  i->addIncoming(ir.getInt64(0), before);
  ir.CreateCondBr(ir.CreateICmpSLT(i, end), inside, after);
  ir.SetInsertPoint(inside);
  body(i);
  i->addIncoming(ir.CreateAdd(i, ir.getInt64(step)), ir.GetInsertBlock());
  ir.CreateBr(head);
  ir.SetInsertPoint(after);
}

/// Fetches a line into the second-level cache.
void fetch(llvm::IRBuilder<>& ir, Value* address) {
  constexpr unsigned kForReading = 0, kSecondLevel = 2, kData = 1;
  ir.CreateIntrinsic(llvm::Intrinsic::prefetch, {ir.getPtrTy()}, {address, ir.getInt32(kForReading), ir.getInt32(kSecondLevel), ir.getInt32(kData)});
}

}  // namespace

void emit_transposition(llvm::Module& module, const Target& target, DType dtype, const std::string& name) {
  llvm::IRBuilder<> ir(module.getContext());
  auto* pointer = ir.getPtrTy();
  auto* number = ir.getInt64Ty();
  auto* type = llvm::FunctionType::get(ir.getVoidTy(), {pointer, number, pointer, number, number}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  declare_for_machine(*function, target);
  const int lanes = transposed_rows(target, dtype);
  llvm::Type* element = dtype == DType::f64 ? ir.getDoubleTy() : ir.getFloatTy();
  auto* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  const llvm::Align align(size_of(dtype));
  ir.SetInsertPoint(llvm::BasicBlock::Create(ir.getContext(), "entry", function));
  each(ir, function->getArg(4), static_cast<std::uint64_t>(lanes), [&](Value* k) {
    std::vector<Value*> rows;
    Value* from = ir.CreateGEP(element, function->getArg(0), k);
    for (int i = 0; i < lanes; ++i) {
      rows.push_back(ir.CreateAlignedLoad(vector, from, align));
      from = ir.CreateGEP(element, from, function->getArg(1));
    }
    for (int i = 0; i < lanes; ++i) {
      fetch(ir, from);
      from = ir.CreateGEP(element, from, function->getArg(1));
    }
    transpose_in_registers(ir, rows);
    Value* to = ir.CreateGEP(element, function->getArg(2), ir.CreateMul(k, function->getArg(3)));
    for (Value* row : rows) {
      ir.CreateAlignedStore(row, to, align);
      to = ir.CreateGEP(element, to, function->getArg(3));
    }
  });
  ir.CreateRetVoid();
}

void emit_pairing(llvm::Module& module, const Target& target, const std::string& name) {
  constexpr unsigned kLanes = 16;
  llvm::IRBuilder<> ir(module.getContext());
  auto* pointer = ir.getPtrTy();
  auto* half = ir.getInt16Ty();
  auto* number = ir.getInt64Ty();
  auto* function = llvm::Function::Create(llvm::FunctionType::get(ir.getVoidTy(), {pointer, number, pointer, number, number, number}, false), llvm::Function::ExternalLinkage, name, module);
  declare_for_machine(*function, target);
  ir.SetInsertPoint(llvm::BasicBlock::Create(ir.getContext(), "entry", function));
  auto* halves = llvm::FixedVectorType::get(half, kLanes);
  llvm::SmallVector<int, 2 * kLanes> places;
  llvm::SmallVector<llvm::Constant*, kLanes> lanes;
  for (unsigned l = 0; l < kLanes; ++l) places.append({static_cast<int>(l), static_cast<int>(kLanes + l)}), lanes.push_back(ir.getInt64(l));
  each(ir, function->getArg(4), 1, [&](Value* row) {
    Value* even = ir.CreateGEP(half, function->getArg(0), ir.CreateMul(ir.CreateShl(row, 1), function->getArg(1)));
    Value* odd = ir.CreateGEP(half, even, function->getArg(1));
    Value* to = ir.CreateGEP(ir.getInt32Ty(), function->getArg(2), ir.CreateMul(row, function->getArg(3)));
    each(ir, function->getArg(5), kLanes, [&](Value* column) {
      Value* mask = ir.CreateICmpSLT(llvm::ConstantVector::get(lanes), ir.CreateVectorSplat(kLanes, ir.CreateSub(function->getArg(5), column)));
      const auto read = [&](Value* from) { return ir.CreateMaskedLoad(halves, ir.CreateGEP(half, from, column), llvm::Align(2), mask, llvm::Constant::getNullValue(halves)); };
      ir.CreateAlignedStore(ir.CreateShuffleVector(read(even), read(odd), places), ir.CreateGEP(ir.getInt32Ty(), to, column), llvm::Align(4));
    });
  });
  ir.CreateRetVoid();
}

}  // namespace tenon::llvm_backend
