#include "matrix/winograd.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <vector>

namespace tenon::codegen {

using llvm::Value;

namespace {

using Vectors = std::vector<Value*>;

class WinogradEmitter {
 public:
  WinogradEmitter(llvm::Module& module, const Target& target, DType dtype)
      : module_(module), target_(target), ir_(module.getContext()), align_(size_of(dtype)), lanes_(target.vector_bytes / size_of(dtype)) {
    element_ = dtype == DType::f64 ? ir_.getDoubleTy() : ir_.getFloatTy();
    vector_ = llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes_));
  }

  void emit_input(const std::string& name) {
    llvm::Type *p = ir_.getPtrTy(), *n = ir_.getInt64Ty();
    declare(name, ir_.getVoidTy(), {p, p, n, n});
    const Vectors pixels = pointers(0, 16);
    // The last vector overlaps the one before it where the channels are no whole vectors.
    Value* last = ir_.CreateSub(argument(3), number(lanes_));
    Value* end = ir_.CreateAnd(ir_.CreateAdd(argument(3), number(lanes_ - 1)), number(-lanes_));
    over(end, nullptr, [&](Value* k, Value*) {
      Value* at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, k, last);
      Vectors d;
      for (Value* pixel : pixels) d.push_back(load(ir_.CreateGEP(element_, pixel, at)));
      const Vectors v = both_ways(d, 4, [&](const Vectors& x) {
        return Vectors{ir_.CreateFSub(x[0], x[2]), ir_.CreateFAdd(x[1], x[2]), ir_.CreateFSub(x[2], x[1]), ir_.CreateFSub(x[1], x[3])};
      });
      for (int i = 0; i < 16; ++i) store(v[static_cast<std::size_t>(i)], place(argument(1), i, argument(2), at));
      return static_cast<Value*>(nullptr);
    });
    ir_.CreateRetVoid();
  }

  void emit_weights(const std::string& name) {
    llvm::Type *p = ir_.getPtrTy(), *n = ir_.getInt64Ty();
    declare(name, ir_.getVoidTy(), {p, n, p, n, n});
    Value* half = llvm::ConstantFP::get(vector_, 0.5);
    over(argument(4), nullptr, [&](Value* k, Value*) {
      Vectors g;
      for (int i = 0; i < 9; ++i) g.push_back(load(place(argument(0), i, argument(1), k)));
      const Vectors u = both_ways(g, 3, [&](const Vectors& x) {
        Value* ends = ir_.CreateFAdd(x[0], x[2]);
        return Vectors{x[0], ir_.CreateFMul(half, ir_.CreateFAdd(ends, x[1])), ir_.CreateFMul(half, ir_.CreateFSub(ends, x[1])), x[2]};
      });
      for (int i = 0; i < 16; ++i) store(u[static_cast<std::size_t>(i)], place(argument(2), i, argument(3), k));
      return static_cast<Value*>(nullptr);
    });
    ir_.CreateRetVoid();
  }

  void emit_output(const std::string& name) {
    llvm::Type *p = ir_.getPtrTy(), *n = ir_.getInt64Ty();
    declare(name, ir_.getInt64Ty(), {p, n, p, n});
    const Vectors rows = pointers(2, 4);
    Value* zero = llvm::Constant::getNullValue(vector_);
    // 0 times a result is added up: what is not finite leaves a NaN.
    Value* found = over(argument(3), zero, [&](Value* k, Value* sum) {
      Vectors m;
      for (int i = 0; i < 16; ++i) m.push_back(load(place(argument(0), i, argument(1), k)));
      const Vectors y = both_ways(m, 4, [&](const Vectors& x) {
        return Vectors{ir_.CreateFAdd(ir_.CreateFAdd(x[0], x[1]), x[2]), ir_.CreateFSub(ir_.CreateFSub(x[1], x[2]), x[3])};
      });
      for (std::size_t i = 0; i < 4; ++i) {
        store(y[i], ir_.CreateGEP(element_, rows[i], k));
        sum = ir_.CreateFAdd(sum, ir_.CreateFMul(y[i], zero));
      }
      return sum;
    });
    Value* any = ir_.CreateOrReduce(ir_.CreateFCmpUNO(found, zero));
    ir_.CreateRet(ir_.CreateZExt(any, ir_.getInt64Ty()));
  }

 private:
  Value* argument(unsigned i) { return function_->getArg(i); }
  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(ir_.getContext(), name, function_); }
  Value* number(std::int64_t n) { return ir_.getInt64(static_cast<std::uint64_t>(n)); }
  Value* load(Value* address) { return ir_.CreateAlignedLoad(vector_, address, align_); }
  void store(Value* v, Value* address) { ir_.CreateAlignedStore(v, address, align_); }
  Value* place(Value* base, int i, Value* stride, Value* k) {
    return ir_.CreateGEP(element_, base, ir_.CreateAdd(ir_.CreateMul(number(i), stride), k));
  }

  void declare(const std::string& name, llvm::Type* result, std::initializer_list<llvm::Type*> parameters) {
    function_ = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false), llvm::Function::ExternalLinkage, name, module_);
    function_->addFnAttr("target-cpu", target_.cpu);
    function_->addFnAttr("target-features", target_.features);
    if (target_.vector_bytes == 64) function_->addFnAttr("prefer-vector-width", "512");
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    ir_.SetInsertPoint(block("entry"));
  }

  Vectors pointers(unsigned list, int count) {
    Vectors all;
    for (int i = 0; i < count; ++i)
      all.push_back(ir_.CreateAlignedLoad(ir_.getPtrTy(), ir_.CreateConstGEP1_64(ir_.getPtrTy(), argument(list), static_cast<std::uint64_t>(i)), llvm::Align(8)));
    return all;
  }

  /// Applies `one` to the rows of a square of `side` vectors a side, then to the columns of the result. Gives it row by row.
  template <class Transform>
  Vectors both_ways(const Vectors& square, std::size_t side, Transform one) {
    std::vector<Vectors> rows;
    for (std::size_t i = 0; i < side; ++i) rows.push_back(one(Vectors(square.begin() + static_cast<std::ptrdiff_t>(i * side), square.begin() + static_cast<std::ptrdiff_t>((i + 1) * side))));
    const std::size_t width = rows[0].size();
    Vectors result;
    for (std::size_t j = 0; j < width; ++j) {
      Vectors column;
      for (const Vectors& row : rows) column.push_back(row[j]);
      const Vectors done = one(column);
      result.resize(done.size() * width);
      for (std::size_t i = 0; i < done.size(); ++i) result[i * width + j] = done[i];
    }
    return result;
  }

  /// Emits a loop over vectors up to `end` that may carry one value.
  template <class Body>
  Value* over(Value* end, Value* initial, Body body) {
    auto *before = ir_.GetInsertBlock(), *head = block("head"), *inside = block("body"), *after = block("after");
    ir_.CreateBr(head);
    ir_.SetInsertPoint(head);
    auto* k = ir_.CreatePHI(ir_.getInt64Ty(), 2);
    k->addIncoming(number(0), before);
    llvm::PHINode* carried = nullptr;
    if (initial) {
      carried = ir_.CreatePHI(vector_, 2);
      carried->addIncoming(initial, before);
    }
    ir_.CreateCondBr(ir_.CreateICmpSLT(k, end), inside, after);
    ir_.SetInsertPoint(inside);
    Value* next = body(k, carried);
    k->addIncoming(ir_.CreateAdd(k, number(lanes_)), inside);
    if (carried) carried->addIncoming(next, inside);
    ir_.CreateBr(head);
    ir_.SetInsertPoint(after);
    return carried;
  }

  llvm::Module& module_;
  const Target& target_;
  llvm::IRBuilder<> ir_;
  llvm::Align align_;
  std::int64_t lanes_;
  llvm::Type* element_ = nullptr;
  llvm::FixedVectorType* vector_ = nullptr;
  llvm::Function* function_ = nullptr;
};

}  // namespace

void emit_winograd(llvm::Module& module, const Target& target, DType dtype, const std::string& input, const std::string& weights, const std::string& output) {
  WinogradEmitter emitter(module, target, dtype);
  emitter.emit_input(input);
  emitter.emit_weights(weights);
  emitter.emit_output(output);
}

}  // namespace tenon::codegen
