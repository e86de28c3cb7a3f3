// What kernels that keep a tile of C in registers have in common: how they read, multiply and store.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <string>
#include <vector>

#include "isa/x86_isa.h"
#include "matrix/microkernel.h"

namespace tenon::llvm_backend {

/// Of a function whose arguments 3, 4, 7, 8 and 9 are c, c_stride, rows, columns and before, as a MicroKernel's.
class TileEmitter {
 protected:
  using BasicBlock = llvm::BasicBlock;
  using Value = llvm::Value;

  TileEmitter(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape)
      : module_(module), target_(target), ir_(module.getContext()), shape_(shape), pairs_(dtype == DType::bf16), bytes_(static_cast<int>(size_of(compute_type(dtype)))) {
    element_ = dtype == DType::f64 ? ir_.getDoubleTy() : ir_.getFloatTy();
    lanes_ = static_cast<int>(target.vector_bytes) / bytes_;
    vectors_ = shape_.columns / lanes_;
    vector_ = llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes_));
  }

  Value* argument(unsigned i) { return function_->getArg(i); }
  BasicBlock* block(const char* name) { return BasicBlock::Create(ir_.getContext(), name, function_); }

  void declare(const std::string& name, const std::vector<llvm::Type*>& arguments) {
    function_ = llvm::Function::Create(llvm::FunctionType::get(ir_.getVoidTy(), arguments, false), llvm::Function::ExternalLinkage, name, module_);
    declare_for_machine(*function_, target_);
    keep_order_of(*function_);
    for (unsigned i : {0u, 3u}) function_->addParamAttr(i, llvm::Attribute::NoAlias);
    ir_.SetInsertPoint(block("entry"));
  }

  /// A MicroKernel.
  void declare_microkernel(const std::string& name) {
    auto* p = ir_.getPtrTy();
    auto* n = ir_.getInt64Ty();
    declare(name, {p, n, n, p, n, n, n, n, n, n, p, n, n, n});
  }

  void place_rows() {
    for (int i = 0; i < shape_.rows; ++i)
      c_rows_.push_back(ir_.CreateGEP(element_, argument(3), ir_.CreateMul(ir_.getInt64(static_cast<std::uint64_t>(i)), argument(4))));
  }

  Value* is(Before what) { return ir_.CreateICmpEQ(argument(9), ir_.getInt64(static_cast<std::uint64_t>(what))); }

  Value* c_address(int i, int j) { return ir_.CreateConstGEP1_64(element_, c_rows_[static_cast<std::size_t>(i)], static_cast<std::uint64_t>(j * lanes_)); }

  /// Emits a loop that carries the sums; `body` updates them.
  template <class Body>
  std::vector<Value*> loop(Value* low, Value* high, Value* step, const std::vector<Value*>& initial, Body body) {
    auto* before = ir_.GetInsertBlock();
    auto* head = block("head");
    auto* inside = block("body");
    auto* after = block("after");
    ir_.CreateBr(head);
    ir_.SetInsertPoint(head);
    auto* k = ir_.CreatePHI(ir_.getInt64Ty(), 2);
    k->addIncoming(low, before);
    std::vector<Value*> sums;
    for (Value* v : initial) {
      auto* phi = ir_.CreatePHI(v->getType(), 2);
      phi->addIncoming(v, before);
      sums.push_back(phi);
    }
    const std::vector<Value*> phis = sums;
    ir_.CreateCondBr(ir_.CreateICmpSLT(k, high), inside, after);
    ir_.SetInsertPoint(inside);
    body(k, sums);
    Value* next = ir_.CreateAdd(k, step);
    auto* latch = ir_.GetInsertBlock();
    ir_.CreateBr(head);
    k->addIncoming(next, latch);
    for (std::size_t i = 0; i < phis.size(); ++i) llvm::cast<llvm::PHINode>(phis[i])->addIncoming(sums[i], latch);
    ir_.SetInsertPoint(after);
    return phis;
  }

  /// Loads vector j of a row of b.
  Value* read_columns(Value* address, int j, Reads reads) {
    const llvm::Align align(static_cast<std::uint64_t>(bytes_));
    if (reads == Reads::columns) return ir_.CreateMaskedLoad(vector_, address, align, masks_[static_cast<std::size_t>(j)], llvm::Constant::getNullValue(vector_));
    return ir_.CreateAlignedLoad(vector_, address, align);
  }

  /// Loads vector j of two rows of halves, and puts their elements side by side.
  Value* read_pairs(Value* address, int j, Value* apart, Reads reads) {
    auto* halves = llvm::FixedVectorType::get(ir_.getInt16Ty(), static_cast<unsigned>(lanes_));
    const auto row = [&](Value* at) -> Value* {
      const llvm::Align align(2);
      if (reads == Reads::columns) return ir_.CreateMaskedLoad(halves, at, align, masks_[static_cast<std::size_t>(j)], llvm::Constant::getNullValue(halves));
      return ir_.CreateAlignedLoad(halves, at, align);
    };
    Value *even = row(address), *odd = row(ir_.CreateGEP(ir_.getInt16Ty(), address, apart));
    llvm::SmallVector<int, 32> places;
    for (int l = 0; l < lanes_; ++l) places.push_back(l), places.push_back(lanes_ + l);
    return ir_.CreateBitCast(ir_.CreateShuffleVector(even, odd, places), vector_);
  }

  /// Adds a row of b times the element of a at an address to the sums of row i.
  void multiply_row(int i, Value* address, const std::vector<Value*>& b, std::vector<Value*>& sums) {
    Value* a = ir_.CreateVectorSplat(static_cast<unsigned>(lanes_), ir_.CreateAlignedLoad(element_, address, llvm::Align(static_cast<std::uint64_t>(bytes_))));
    for (int j = 0; j < vectors_; ++j) {
      Value*& sum = sums[static_cast<std::size_t>(i * vectors_ + j)];
      sum = multiply_added(ir_, target_, pairs_, a, b[static_cast<std::size_t>(j)], sum);
    }
  }

  /// The sum of a part is added to what C holds at its end, so that long sums are sums of short ones.
  void finish(const std::vector<Value*>& sums) {
    Value* is_whole = ir_.CreateICmpEQ(argument(8), ir_.getInt64(static_cast<std::uint64_t>(shape_.columns)));
    Value* adds = is(Before::added);
    auto* whole = block("whole");
    auto* part = block("part");
    ir_.CreateCondBr(is_whole, whole, part);
    for (const bool masked : {false, true}) {
      ir_.SetInsertPoint(masked ? part : whole);
      if (masked && masks_.empty()) masks_ = column_masks();
      auto* add = block("add");
      auto* replace = block("replace");
      ir_.CreateCondBr(adds, add, replace);
      ir_.SetInsertPoint(add);
      store_rows(sums, masked, true);
      ir_.SetInsertPoint(replace);
      store_rows(sums, masked, false);
    }
  }

  /// By vector of a row: which of its lanes C has.
  std::vector<Value*> column_masks() {
    std::vector<Value*> masks;
    for (int j = 0; j < vectors_; ++j) {
      Value* left = ir_.CreateSub(argument(8), ir_.getInt64(static_cast<std::uint64_t>(j * lanes_)));
      Value* clamped = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, ir_.getInt64(static_cast<std::uint64_t>(lanes_))), ir_.getInt64(0));
      llvm::SmallVector<llvm::Constant*, 64> numbers;
      for (int l = 0; l < lanes_; ++l) numbers.push_back(ir_.getInt32(static_cast<std::uint32_t>(l)));
      masks.push_back(ir_.CreateICmpULT(llvm::ConstantVector::get(numbers), ir_.CreateVectorSplat(static_cast<unsigned>(lanes_), ir_.CreateTrunc(clamped, ir_.getInt32Ty()))));
    }
    return masks;
  }

  void store_rows(const std::vector<Value*>& sums, bool masked, bool add) {
    Value* free_rows = masked && !add ? rows_before_shared() : nullptr;
    for (int i = 0; i < shape_.rows; ++i) {
      auto* next = block("next");
      store_where(argument(7), i, next, [&] {
        if (free_rows) store_where(free_rows, i, next, [&] { store_row(sums, i, false, false); });
        store_row(sums, i, masked, add);
      });
      ir_.CreateBr(next);
      ir_.SetInsertPoint(next);
    }
    ir_.CreateRetVoid();
  }

  /// Where row i is one of the first so many, stores it and goes on at `after`; emission goes on where it is not.
  template <class Store>
  void store_where(Value* rows, int i, BasicBlock* after, Store store) {
    auto* write = block("write");
    auto* other = block("other");
    ir_.CreateCondBr(ir_.CreateICmpSGT(rows, ir_.getInt64(static_cast<std::uint64_t>(i))), write, other);
    ir_.SetInsertPoint(write);
    store();
    ir_.CreateBr(after);
    ir_.SetInsertPoint(other);
  }

  /// Rows that may be stored whole though the tile has fewer columns: where rows of C lie without a gap, what is too much of them falls on
  /// rows that are stored after them. Processors take a dozen times as long for a masked store.
  Value* rows_before_shared() {
    Value* columns = ir_.CreateTrunc(argument(8), ir_.getInt32Ty());
    Value* reached = ir_.CreateUDiv(ir_.getInt32(static_cast<std::uint32_t>(shape_.columns) - 1), columns);  // rows behind its own that a whole row falls on
    Value* free_rows = ir_.CreateSub(argument(7), ir_.CreateZExt(reached, ir_.getInt64Ty()));
    return ir_.CreateSelect(ir_.CreateICmpEQ(argument(4), argument(8)), free_rows, ir_.getInt64(0));
  }

  void store_row(const std::vector<Value*>& sums, int i, bool masked, bool add) {
    const llvm::Align align(static_cast<std::uint64_t>(bytes_));
    for (int j = 0; j < vectors_; ++j) {
      Value* v = sums[static_cast<std::size_t>(i * vectors_ + j)];
      Value* mask = masked ? masks_[static_cast<std::size_t>(j)] : nullptr;
      Value* to = c_address(i, j);
      if (add) {
        Value* zero = llvm::Constant::getNullValue(vector_);
        Value* before = masked ? static_cast<Value*>(ir_.CreateMaskedLoad(vector_, to, align, mask, zero)) : ir_.CreateAlignedLoad(vector_, to, align);
        v = ir_.CreateFAdd(before, v);
      }
      if (masked) ir_.CreateMaskedStore(v, to, align, mask);
      else ir_.CreateAlignedStore(v, to, align);
    }
  }

  llvm::Module& module_;
  const Target& target_;
  llvm::IRBuilder<> ir_;
  TileShape shape_;
  bool pairs_;  // an element of a or b is two of bfloat16
  int bytes_, lanes_ = 0, vectors_ = 0;
  llvm::Type* element_ = nullptr;
  llvm::FixedVectorType* vector_ = nullptr;
  llvm::Function* function_ = nullptr;
  std::vector<Value*> c_rows_, masks_;
};

}  // namespace tenon::llvm_backend
