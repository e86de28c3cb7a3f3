#include "matrix/winograd.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <memory>
#include <utility>
#include <vector>

#include "isa/x86_isa.h"

namespace tenon::llvm_backend {

using llvm::Value;

namespace {

using Vectors = std::vector<Value*>;

/// The sums that one row or column goes through.
class Transformation {
 public:
  virtual ~Transformation() = default;
  virtual Vectors input(const Vectors& x) = 0;
  virtual Vectors weights(const Vectors& x) = 0;
  virtual Vectors output(const Vectors& x) = 0;
};

class Arithmetic {
 public:
  Arithmetic(llvm::IRBuilder<>& ir, bool has_fma, llvm::Type* vector) : ir_(ir), has_fma_(has_fma), vector_(vector) {}

  Value* add(Value* a, Value* b) { return ir_.CreateFAdd(a, b); }
  Value* sub(Value* a, Value* b) { return ir_.CreateFSub(a, b); }
  Value* mul(double a, Value* b) { return ir_.CreateFMul(llvm::ConstantFP::get(vector_, a), b); }
  Value* fma(double a, Value* b, Value* c) {
    if (!has_fma_) return add(mul(a, b), c);
    return ir_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_}, {llvm::ConstantFP::get(vector_, a), b, c});
  }

 private:
  llvm::IRBuilder<>& ir_;
  bool has_fma_;
  llvm::Type* vector_;
};

/// The points 0, 1 and -1.
class SmallSquare final : public Transformation {
 public:
  explicit SmallSquare(Arithmetic& math) : m_(math) {}

  Vectors input(const Vectors& x) override { return {m_.sub(x[0], x[2]), m_.add(x[1], x[2]), m_.sub(x[2], x[1]), m_.sub(x[1], x[3])}; }
  Vectors weights(const Vectors& x) override {
    Value* ends = m_.add(x[0], x[2]);
    return {x[0], m_.mul(0.5, m_.add(ends, x[1])), m_.mul(0.5, m_.sub(ends, x[1])), x[2]};
  }
  Vectors output(const Vectors& x) override { return {m_.add(m_.add(x[0], x[1]), x[2]), m_.sub(m_.sub(x[1], x[2]), x[3])}; }

  /// `output` and `weights` transposed.
  Vectors results(const Vectors& x) { return {x[0], m_.add(x[0], x[1]), m_.sub(x[0], x[1]), m_.mul(-1, x[1])}; }
  Vectors taps(const Vectors& x) {
    Value* middle = m_.mul(0.5, m_.add(x[1], x[2]));
    return {m_.add(x[0], middle), m_.mul(0.5, m_.sub(x[1], x[2])), m_.add(middle, x[3])};
  }

 private:
  Arithmetic& m_;
};

/// The points 0, a, -a, b and -b. With 3/4 and 3/2 all factors but those of the weights are exact, and the error is half that of 1 and 2:
/// Barabasz et al., arXiv 1803.10986, on the choice of points.
class LargeSquare final : public Transformation {
 public:
  explicit LargeSquare(Arithmetic& math) : m_(math) {}

  Vectors input(const Vectors& x) override {
    const auto ends = [&](std::size_t i) { return m_.fma(kA2 * kB2, x[i], m_.fma(-(kA2 + kB2), x[i + 2], x[i + 4])); };
    Value *even_a = m_.fma(-kB2, x[2], x[4]), *odd_a = m_.mul(kA, m_.fma(-kB2, x[1], x[3]));
    Value *even_b = m_.fma(-kA2, x[2], x[4]), *odd_b = m_.mul(kB, m_.fma(-kA2, x[1], x[3]));
    return {ends(0), m_.add(even_a, odd_a), m_.sub(even_a, odd_a), m_.add(even_b, odd_b), m_.sub(even_b, odd_b), ends(1)};
  }
  Vectors weights(const Vectors& x) override {
    const auto pair = [&](double point, double scale) {
      Value *even = m_.mul(scale, m_.fma(point * point, x[2], x[0])), *odd = m_.mul(scale * point, x[1]);
      return std::pair{m_.add(even, odd), m_.sub(even, odd)};
    };
    const auto [plus_a, minus_a] = pair(kA, 1 / (2 * kA2 * (kA2 - kB2)));
    const auto [plus_b, minus_b] = pair(kB, 1 / (2 * kB2 * (kB2 - kA2)));
    return {m_.mul(1 / (kA2 * kB2), x[0]), plus_a, minus_a, plus_b, minus_b, x[2]};
  }
  Vectors output(const Vectors& x) override {
    Value *even_a = m_.add(x[1], x[2]), *odd_a = m_.sub(x[1], x[2]), *even_b = m_.add(x[3], x[4]), *odd_b = m_.sub(x[3], x[4]);
    return {m_.add(x[0], m_.add(even_a, even_b)), m_.fma(kA, odd_a, m_.mul(kB, odd_b)), m_.fma(kA2, even_a, m_.mul(kB2, even_b)),
            m_.fma(kA2 * kA, odd_a, m_.fma(kB2 * kB, odd_b, x[5]))};
  }

 private:
  static constexpr double kA = 0.75, kB = 1.5, kA2 = kA * kA, kB2 = kB * kB;
  Arithmetic& m_;
};

class WinogradEmitter {
 public:
  WinogradEmitter(llvm::Module& module, const Target& target, DType dtype, std::int64_t side)
      : module_(module), target_(target), ir_(module.getContext()), align_(size_of(dtype)), lanes_(target.vector_bytes / size_of(dtype)), places_a_side_(static_cast<std::size_t>(side + 2)) {
    element_ = dtype == DType::f64 ? ir_.getDoubleTy() : ir_.getFloatTy();
    vector_ = llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes_));
    math_ = std::make_unique<Arithmetic>(ir_, target.has_fma, vector_);
  }

  Arithmetic& math() { return *math_; }

  /// A WinogradInput of squares with so many pixels a side.
  template <class Transform>
  void emit_square(const std::string& name, std::size_t side, Transform transform) {
    llvm::Type *p = ir_.getPtrTy(), *n = ir_.getInt64Ty();
    declare(name, ir_.getVoidTy(), {p, p, n, n});
    // The last vector overlaps the one before it where the channels are no whole vectors.
    Value* last = ir_.CreateSub(argument(3), number(lanes_));
    Value* end = ir_.CreateAnd(ir_.CreateAdd(argument(3), number(lanes_ - 1)), number(-lanes_));
    over(end, nullptr, [&](Value* k, Value*) {
      Value* at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, k, last);
      Vectors d;
      for (std::size_t i = 0; i < side * side; ++i) d.push_back(load(ir_.CreateGEP(element_, pointer(0, i), at)));
      const Vectors v = both_ways(d, side, transform);
      for (std::size_t i = 0; i < v.size(); ++i) store(v[i], place(argument(1), i, argument(2), at));
      return static_cast<Value*>(nullptr);
    });
    ir_.CreateRetVoid();
  }

  /// A WinogradWeights.
  template <class Transform>
  void emit_weights(const std::string& name, Transform transform) {
    llvm::Type *p = ir_.getPtrTy(), *n = ir_.getInt64Ty();
    declare(name, ir_.getVoidTy(), {p, n, p, n, n});
    over(argument(4), nullptr, [&](Value* k, Value*) {
      const Vectors u = both_ways(all(kWinogradTaps, argument(0), argument(1), k), 3, transform);
      for (std::size_t i = 0; i < u.size(); ++i) store(u[i], place(argument(2), i, argument(3), k));
      return static_cast<Value*>(nullptr);
    });
    ir_.CreateRetVoid();
  }

  /// A WinogradOutput.
  template <class Transform>
  void emit_output(const std::string& name, Transform transform) {
    llvm::Type *p = ir_.getPtrTy(), *n = ir_.getInt64Ty();
    declare(name, ir_.getInt64Ty(), {p, n, p, n});
    Value* zero = llvm::Constant::getNullValue(vector_);
    // 0 times a result is added up: what is not finite leaves a NaN.
    Value* found = over(argument(3), zero, [&](Value* k, Value* sum) {
      const Vectors y = both_ways(all(places_a_side_ * places_a_side_, argument(0), argument(1), k), places_a_side_, transform);
      for (std::size_t i = 0; i < y.size(); ++i) {
        store(y[i], ir_.CreateGEP(element_, pointer(2, i), k));
        sum = math_->add(sum, math_->mul(0, y[i]));
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
  Value* place(Value* base, std::size_t i, Value* stride, Value* k) {
    return ir_.CreateGEP(element_, base, ir_.CreateAdd(ir_.CreateMul(number(static_cast<std::int64_t>(i)), stride), k));
  }
  Vectors all(std::size_t count, Value* base, Value* stride, Value* k) {
    Vectors loaded;
    for (std::size_t i = 0; i < count; ++i) loaded.push_back(load(place(base, i, stride, k)));
    return loaded;
  }

  void declare(const std::string& name, llvm::Type* result, std::initializer_list<llvm::Type*> parameters) {
    function_ = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false), llvm::Function::ExternalLinkage, name, module_);
    declare_for_machine(*function_, target_);
    ir_.SetInsertPoint(block("entry"));
  }

  Value* pointer(unsigned list, std::size_t i) {
    return ir_.CreateAlignedLoad(ir_.getPtrTy(), ir_.CreateConstGEP1_64(ir_.getPtrTy(), argument(list), i), llvm::Align(8));
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
  std::size_t places_a_side_;
  std::unique_ptr<Arithmetic> math_;
  llvm::Type* element_ = nullptr;
  llvm::FixedVectorType* vector_ = nullptr;
  llvm::Function* function_ = nullptr;
};

}  // namespace

void emit_winograd(llvm::Module& module, const Target& target, DType dtype, std::int64_t side, const std::string& input, const std::string& weights,
                   const std::string& output) {
  WinogradEmitter emitter(module, target, dtype, side);
  std::unique_ptr<Transformation> one_way;
  if (side == kSmallSquare) one_way = std::make_unique<SmallSquare>(emitter.math());
  else one_way = std::make_unique<LargeSquare>(emitter.math());
  emitter.emit_square(input, static_cast<std::size_t>(side + 2), [&](const Vectors& x) { return one_way->input(x); });
  emitter.emit_weights(weights, [&](const Vectors& x) { return one_way->weights(x); });
  emitter.emit_output(output, [&](const Vectors& x) { return one_way->output(x); });
}

void emit_winograd_sum(llvm::Module& module, const Target& target, DType dtype, const std::string& input, const std::string& results, const std::string& taps) {
  WinogradEmitter emitter(module, target, dtype, kSmallSquare);
  SmallSquare one_way(emitter.math());
  emitter.emit_square(input, kSmallSquare + 2, [&](const Vectors& x) { return one_way.input(x); });
  emitter.emit_square(results, kSmallSquare, [&](const Vectors& x) { return one_way.results(x); });
  emitter.emit_output(taps, [&](const Vectors& x) { return one_way.taps(x); });
}

}  // namespace tenon::llvm_backend
