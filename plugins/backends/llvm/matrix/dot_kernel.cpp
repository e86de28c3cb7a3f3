#include "matrix/dot_kernel.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <vector>

#include "isa/x86_isa.h"

namespace tenon::llvm_backend {

using llvm::Value;

/// Sums that are folded together.
static constexpr int kFolded = 4;

TileShape dot_shape(const Target& target) { return {target.vector_bytes == 64 ? 4 : 2, kFolded}; }

TileShape dot_row_shape() { return {1, 2 * kFolded}; }

namespace {

class DotEmitter {
 public:
  DotEmitter(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, std::optional<DType> of_b)
      : module_(module), target_(target), ir_(module.getContext()), shape_(shape), pairs_(dtype == DType::bf16), of_b_(of_b), align_(size_of(compute_type(dtype))),
        lanes_(static_cast<int>(target.vector_bytes / size_of(compute_type(dtype)))) {
    element_ = dtype == DType::f64 ? ir_.getDoubleTy() : ir_.getFloatTy();
    vector_ = llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes_));
  }

  void emit(const std::string& name) {
    declare(name, ir_.getPtrTy());
    ir_.SetInsertPoint(block("entry"));
    for (int i = 0; i < shape_.rows; ++i) rows_.push_back(pointer(argument(0), i));
    for (int j = 0; j < shape_.columns; ++j) columns_.push_back(pointer(argument(1), j));
    auto sums = whole_vectors(std::vector<Value*>(static_cast<std::size_t>(shape_.rows * shape_.columns), llvm::Constant::getNullValue(vector_)));
    add_rest(sums);
    give(sums, ir_.CreateICmpNE(argument(7), number(0)));
  }

  void emit_windows(const std::string& name) {
    declare(name, ir_.getInt64Ty());
    ir_.SetInsertPoint(block("entry"));
    auto *before = ir_.GetInsertBlock(), *head = block("step"), *body = block("runs"), *after = block("summed");
    ir_.CreateBr(head);
    ir_.SetInsertPoint(head);
    auto* step = ir_.CreatePHI(ir_.getInt64Ty(), 2);
    step->addIncoming(number(0), before);
    std::vector<Value*> sums;
    for (int i = 0; i < shape_.rows * shape_.columns; ++i) {
      auto* sum = ir_.CreatePHI(vector_, 2);
      sum->addIncoming(llvm::Constant::getNullValue(vector_), before);
      sums.push_back(sum);
    }
    const auto phis = sums;
    ir_.CreateCondBr(ir_.CreateICmpSLT(step, argument(1)), body, after);
    ir_.SetInsertPoint(body);
    Value* entry = ir_.CreateGEP(ir_.getPtrTy(), argument(0), ir_.CreateMul(step, number(1 + shape_.rows)));
    for (int j = 0; j < shape_.columns; ++j) columns_.push_back(ir_.CreateGEP(element_, pointer(entry, 0), ir_.CreateMul(argument(7), number(j))));
    for (int i = 0; i < shape_.rows; ++i) rows_.push_back(pointer(entry, 1 + i));
    sums = whole_vectors(sums);
    add_rest(sums);
    step->addIncoming(ir_.CreateAdd(step, number(1)), ir_.GetInsertBlock());
    for (std::size_t i = 0; i < sums.size(); ++i) llvm::cast<llvm::PHINode>(phis[i])->addIncoming(sums[i], ir_.GetInsertBlock());
    ir_.CreateBr(head);
    ir_.SetInsertPoint(after);
    give(phis, ir_.getFalse());
  }

 private:
  Value* argument(unsigned i) { return function_->getArg(i); }
  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(ir_.getContext(), name, function_); }
  Value* number(std::int64_t n) { return ir_.getInt64(static_cast<std::uint64_t>(n)); }

  void declare(const std::string& name, llvm::Type* second) {
    auto* p = ir_.getPtrTy();
    auto* n = ir_.getInt64Ty();
    function_ = llvm::Function::Create(llvm::FunctionType::get(ir_.getVoidTy(), {p, second, p, n, n, n, n, n}, false), llvm::Function::ExternalLinkage, name, module_);
    declare_for_machine(*function_, target_);
    for (unsigned i : {0u, 1u, 2u})
      if (argument(i)->getType() == p) function_->addParamAttr(i, llvm::Attribute::NoAlias);
  }

  Value* pointer(Value* list, int i) {
    return ir_.CreateAlignedLoad(ir_.getPtrTy(), ir_.CreateConstGEP1_64(ir_.getPtrTy(), list, static_cast<std::uint64_t>(i)), llvm::Align(8));
  }

  /// Lanes of numbers below `limit`.
  Value* lanes_below(Value* limit, int lanes) {
    llvm::SmallVector<llvm::Constant*, 16> numbers;
    for (int l = 0; l < lanes; ++l) numbers.push_back(ir_.getInt64(static_cast<std::uint64_t>(l)));
    return ir_.CreateICmpSLT(llvm::ConstantVector::get(numbers), ir_.CreateVectorSplat(static_cast<unsigned>(lanes), limit));
  }

  /// Adds the sums over all whole vectors of k.
  std::vector<Value*> whole_vectors(const std::vector<Value*>& first) {
    auto *before = ir_.GetInsertBlock(), *head = block("head"), *body = block("body"), *after = block("after");
    Value* end = ir_.CreateAnd(argument(4), number(-static_cast<std::int64_t>(lanes_)));
    ir_.CreateBr(head);
    ir_.SetInsertPoint(head);
    k_ = ir_.CreatePHI(ir_.getInt64Ty(), 2);
    k_->addIncoming(number(0), before);
    std::vector<Value*> sums;
    for (Value* start : first) {
      auto* sum = ir_.CreatePHI(vector_, 2);
      sum->addIncoming(start, before);
      sums.push_back(sum);
    }
    const auto phis = sums;
    ir_.CreateCondBr(ir_.CreateICmpSLT(k_, end), body, after);
    ir_.SetInsertPoint(body);
    add_products(sums, nullptr);
    k_->addIncoming(ir_.CreateAdd(k_, number(lanes_)), body);
    for (std::size_t i = 0; i < sums.size(); ++i) llvm::cast<llvm::PHINode>(phis[i])->addIncoming(sums[i], body);
    ir_.CreateBr(head);
    ir_.SetInsertPoint(after);
    return phis;
  }

  void add_rest(std::vector<Value*>& sums) {
    auto *before = ir_.GetInsertBlock(), *rest = block("rest"), *done = block("done");
    ir_.CreateCondBr(ir_.CreateICmpSLT(k_, argument(4)), rest, done);
    ir_.SetInsertPoint(rest);
    auto added = sums;
    add_products(added, lanes_below(ir_.CreateSub(argument(4), k_), lanes_));
    ir_.CreateBr(done);
    ir_.SetInsertPoint(done);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      auto* either = ir_.CreatePHI(vector_, 2);
      either->addIncoming(sums[i], before);
      either->addIncoming(added[i], rest);
      sums[i] = either;
    }
  }

  Value* vector_at(Value* from, Value* mask) {
    Value* address = ir_.CreateGEP(element_, from, k_);
    if (!mask) return ir_.CreateAlignedLoad(vector_, address, align_);
    return ir_.CreateMaskedLoad(vector_, address, align_, mask, llvm::Constant::getNullValue(vector_));
  }

  /// Loads half precision as float32.
  Value* widened_at(Value* from, Value* mask) {
    auto* halves = llvm::FixedVectorType::get(ir_.getInt16Ty(), static_cast<unsigned>(lanes_));
    Value* address = ir_.CreateGEP(ir_.getInt16Ty(), from, k_);
    const llvm::Align align(2);
    Value* bits = mask ? static_cast<Value*>(ir_.CreateMaskedLoad(halves, address, align, mask, llvm::Constant::getNullValue(halves))) : ir_.CreateAlignedLoad(halves, address, align);
    if (of_b_ == DType::f16) return ir_.CreateFPExt(ir_.CreateBitCast(bits, llvm::FixedVectorType::get(ir_.getHalfTy(), static_cast<unsigned>(lanes_))), vector_);
    return ir_.CreateBitCast(ir_.CreateShl(ir_.CreateZExt(bits, llvm::FixedVectorType::get(ir_.getInt32Ty(), static_cast<unsigned>(lanes_))), 16), vector_);
  }

  void add_products(std::vector<Value*>& sums, Value* mask) {
    std::vector<Value*> b;
    for (Value* column : columns_) b.push_back(of_b_ ? widened_at(column, mask) : vector_at(column, mask));
    std::size_t at = 0;
    for (Value* row : rows_) {
      Value* a = vector_at(row, mask);
      for (Value* v : b) {
        Value*& sum = sums[at++];
        sum = multiply_added(ir_, target_, pairs_, a, v, sum);
      }
    }
  }

  /// Adds pairs of neighbours: `width` lanes of `a` beside as many of `b`.
  Value* paired(Value* a, Value* b, int width) {
    llvm::SmallVector<int, 16> first, second;
    for (int l = 0; l < lanes_; l += 2 * width)
      for (int half = 0; half < 2; ++half)
        for (int w = 0; w < width; ++w) {
          first.push_back(half * lanes_ + l + w);
          second.push_back(half * lanes_ + l + width + w);
        }
    return ir_.CreateFAdd(ir_.CreateShuffleVector(a, b, first), ir_.CreateShuffleVector(a, b, second));
  }

  /// The sums of kFolded vectors, in as many lanes.
  Value* folded(const std::vector<Value*>& v) {
    Value *low_pair = paired(v[0], v[1], 1), *high_pair = paired(v[2], v[3], 1);
    if (lanes_ == 2) return ir_.CreateShuffleVector(low_pair, high_pair, {0, 1, 2, 3});
    Value* sums = paired(low_pair, high_pair, 2);
    for (int lanes = lanes_; lanes > 4; lanes /= 2) {
      llvm::SmallVector<int, 8> low, high;
      for (int l = 0; l < lanes / 2; ++l) low.push_back(l), high.push_back(l + lanes / 2);
      sums = ir_.CreateFAdd(ir_.CreateShuffleVector(sums, low), ir_.CreateShuffleVector(sums, high));
    }
    return sums;
  }

  /// Stores all sums, or adds them to what is there.
  void give(const std::vector<Value*>& sums, Value* adds) {
    for (int i = 0; i < shape_.rows; ++i)
      for (int j = 0; j < shape_.columns; j += kFolded) {
        const auto first = sums.begin() + i * shape_.columns + j;
        store(i, j, folded({first, first + kFolded}), ir_.CreateVectorSplat(kFolded, adds));
      }
    ir_.CreateRetVoid();
  }

  /// Stores the sums of a row from column `j` on.
  void store(int i, int j, Value* sums, Value* adds) {
    auto *write = block("write"), *skip = block("skip");
    ir_.CreateCondBr(ir_.CreateICmpSGT(argument(5), number(i)), write, skip);
    ir_.SetInsertPoint(write);
    Value* to = ir_.CreateGEP(element_, argument(2), ir_.CreateAdd(ir_.CreateMul(argument(3), number(i)), number(j)));
    Value* mask = lanes_below(ir_.CreateSub(argument(6), number(j)), kFolded);
    Value* zero = llvm::Constant::getNullValue(sums->getType());
    Value* held = ir_.CreateMaskedLoad(sums->getType(), to, align_, ir_.CreateAnd(mask, adds), zero);
    ir_.CreateMaskedStore(ir_.CreateSelect(adds, ir_.CreateFAdd(held, sums), sums), to, align_, mask);
    ir_.CreateBr(skip);
    ir_.SetInsertPoint(skip);
  }

  llvm::Module& module_;
  const Target& target_;
  llvm::IRBuilder<> ir_;
  TileShape shape_;
  bool pairs_;  // an element is two of bfloat16
  std::optional<DType> of_b_;  // half precision of columns of B, which are widened
  llvm::Align align_;
  int lanes_;
  llvm::Type* element_ = nullptr;
  llvm::FixedVectorType* vector_ = nullptr;
  llvm::Function* function_ = nullptr;
  llvm::PHINode* k_ = nullptr;
  std::vector<Value*> rows_, columns_;
};

}  // namespace

void emit_dot_kernel(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, const std::string& name, std::optional<DType> of_b) {
  DotEmitter(module, target, dtype, shape, of_b).emit(name);
}

void emit_window_dots(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, const std::string& name) {
  DotEmitter(module, target, dtype, shape, {}).emit_windows(name);
}

}  // namespace tenon::llvm_backend
