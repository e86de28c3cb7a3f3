#include "matrix/microkernel.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <bit>
#include <vector>

#include "isa/x86_isa.h"

namespace tenon::llvm_backend {

using llvm::BasicBlock;
using llvm::Value;

int tile_columns(unsigned lanes, DType dtype) {
  const int vectors = lanes == 16 ? 4 : 2;
  return vectors * static_cast<int>(lanes * 4 / size_of(dtype));
}

TileShape narrow_tile_shape(const Target& target, DType dtype) {
  return {8, tile_shape(target, dtype).columns / 2};  // more rows have more addresses than registers
}

TileShape streaming_tile_shape(const Target& target, DType dtype) { return {4, tile_shape(target, dtype).columns}; }

TileShape row_tile_shape(const Target& target, DType dtype) { return {1, 4 * tile_shape(target, dtype).columns}; }

TileShape tile_shape(const Target& target, DType dtype) { return {target.vector_bytes >= 32 ? 6 : 4, tile_columns(target.lanes(), dtype)}; }

namespace {

constexpr std::uint64_t kUnroll = kUnrolled;
constexpr int kLine = 64;
constexpr int kPrefetchBytes = 2048;  // ahead in b: gains up to a tenth once b comes from the second-level cache

class Emitter {
 public:
  Emitter(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, Fetches fetches, Reads reads)
      : module_(module), target_(target), ir_(module.getContext()), shape_(shape), bytes_(static_cast<int>(size_of(dtype))), fetches_(fetches), reads_(reads) {
    element_ = dtype == DType::f64 ? ir_.getDoubleTy() : ir_.getFloatTy();
    lanes_ = static_cast<int>(target.vector_bytes) / bytes_;
    vectors_ = shape_.columns / lanes_;
    vector_ = llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes_));
  }

  void emit(const std::string& name) {
    declare(name);
    auto* entry = block("entry");
    ir_.SetInsertPoint(entry);
    if (reads_ == Reads::columns) masks_ = column_masks();
    Value *first = argument(5), *end = argument(6), *length = argument(12);
    Value* unrolled = ir_.CreateAnd(length, ir_.getInt64(~std::uint64_t{kUnroll - 1}));
    place_rows();
    for (std::uint64_t u = 0; u <= kUnroll; ++u) rows_apart_.push_back(ir_.CreateMul(argument(2), ir_.getInt64(u)));
    ahead_apart_ = ir_.CreateMul(argument(11), lines_of_part());
    finish(loop(first, end, length, start(), [&](Value* low, std::vector<Value*>& block_sums) {
      Value* before = ir_.CreateSub(low, first);
      Value *whole = ir_.CreateAdd(low, unrolled), *stop = ir_.CreateAdd(low, length);
      Value* fetched = ir_.CreateMul(before, argument(1));
      block_sums = loop(ir_.getInt64(0), argument(1), ir_.getInt64(1), block_sums, [&](Value* step, std::vector<Value*>& sums) {
        read_step(step, low, ir_.CreateMul(before, argument(13)));
        ahead_ = argument(10);
        if (fetches_ >= Fetches::ahead) ahead_ = fetched_after(ir_.CreateAdd(fetched, ir_.CreateMul(step, unrolled)));
        sums = moving_loop(low, whole, kUnroll, sums, [&](Value* k, std::vector<Value*>& part) {
          if (fetches_ >= Fetches::ahead) fetch();
          for (std::uint64_t u = 0; u < kUnroll; ++u) multiply(ir_.CreateAdd(k, ir_.getInt64(u)), u, part);
        });
        sums = moving_loop(whole, stop, 1, sums, [&](Value* k, std::vector<Value*>& part) { multiply(k, 0, part); });
      });
    }));
  }

 private:
  Value* argument(unsigned i) { return function_->getArg(i); }
  BasicBlock* block(const char* name) { return BasicBlock::Create(ir_.getContext(), name, function_); }

  void declare(const std::string& name) {
    auto* p = ir_.getPtrTy();
    auto* n = ir_.getInt64Ty();
    function_ = llvm::Function::Create(llvm::FunctionType::get(ir_.getVoidTy(), {p, n, n, p, n, n, n, n, n, n, p, n, n, n}, false), llvm::Function::ExternalLinkage, name, module_);
    declare_for_machine(*function_, target_);
    keep_order_of(*function_);
    for (unsigned i : {0u, 3u}) function_->addParamAttr(i, llvm::Attribute::NoAlias);
  }

  void place_rows() {
    for (int i = 0; i < shape_.rows; ++i)
      c_rows_.push_back(ir_.CreateGEP(element_, argument(3), ir_.CreateMul(ir_.getInt64(static_cast<std::uint64_t>(i)), argument(4))));
  }

  /// What the sums start from: zeros, or what C holds where they continue it.
  std::vector<Value*> start() {
    auto* before = ir_.GetInsertBlock();
    auto* load = block("load");
    auto* begin = block("begin");
    Value* zero = llvm::Constant::getNullValue(vector_);
    ir_.CreateCondBr(is(Before::continued), load, begin);
    ir_.SetInsertPoint(load);
    const std::vector<Value*> masks = column_masks();
    std::vector<Value*> held;
    for (int i = 0; i < shape_.rows; ++i) {
      Value* exists = ir_.CreateVectorSplat(static_cast<unsigned>(lanes_), ir_.CreateICmpSGT(argument(7), ir_.getInt64(static_cast<std::uint64_t>(i))));
      for (int j = 0; j < vectors_; ++j)
        held.push_back(ir_.CreateMaskedLoad(vector_, c_address(i, j), llvm::Align(static_cast<std::uint64_t>(bytes_)), ir_.CreateAnd(masks[static_cast<std::size_t>(j)], exists), zero));
    }
    ir_.CreateBr(begin);
    ir_.SetInsertPoint(begin);
    std::vector<Value*> sums;
    for (Value* value : held) {
      auto* phi = ir_.CreatePHI(vector_, 2);
      phi->addIncoming(zero, before);
      phi->addIncoming(value, load);
      sums.push_back(phi);
    }
    return sums;
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

  /// A loop over elements of a step, with which the addresses in b and of what is fetched ahead move: that takes none of the ports that
  /// multiplications run on, as computing them from the number of the element does.
  template <class Body>
  std::vector<Value*> moving_loop(Value* low, Value* high, std::uint64_t elements, std::vector<Value*> carried, Body body) {
    carried.push_back(b_row_), carried.push_back(ahead_);
    carried = loop(low, high, ir_.getInt64(elements), carried, [&](Value* k, std::vector<Value*>& values) {
      ahead_ = taken_from(values), b_row_ = taken_from(values);
      body(k, values);
      values.push_back(ir_.CreateGEP(element_, b_row_, rows_apart_[elements]));
      values.push_back(elements == kUnroll ? ir_.CreateGEP(ir_.getInt8Ty(), ahead_, ahead_apart_) : ahead_);
    });
    ahead_ = taken_from(carried), b_row_ = taken_from(carried);
    return carried;
  }

  static Value* taken_from(std::vector<Value*>& values) {
    Value* last = values.back();
    values.pop_back();
    return last;
  }

  /// Loads what the step multiplies from element `low` on; b of a block starts `b_offset` elements further.
  void read_step(Value* step, Value* low, Value* b_offset) {
    Value* entry = ir_.CreateGEP(ir_.getPtrTy(), argument(0), ir_.CreateMul(step, ir_.getInt64(static_cast<std::uint64_t>(1 + shape_.rows))));
    auto pointer = [&](int i) {
      return ir_.CreateAlignedLoad(ir_.getPtrTy(), ir_.CreateConstGEP1_64(ir_.getPtrTy(), entry, static_cast<std::uint64_t>(i)), llvm::Align(8));
    };
    b_row_ = ir_.CreateGEP(element_, pointer(0), ir_.CreateAdd(b_offset, ir_.CreateMul(low, argument(2))));
    a_rows_.clear();
    for (int i = 0; i < shape_.rows; ++i) a_rows_.push_back(pointer(1 + i));
  }

  static constexpr unsigned kFirstLevel = 3, kSecondLevel = 2;
  void prefetch(Value* address, unsigned level) {
    constexpr unsigned kForReading = 0, kData = 1;
    ir_.CreateIntrinsic(llvm::Intrinsic::prefetch, {ir_.getPtrTy()}, {address, ir_.getInt32(kForReading), ir_.getInt32(level), ir_.getInt32(kData)});
  }

  Value* lines_of_part() { return ir_.getInt64(static_cast<std::uint64_t>(llvm_backend::lines_of_part(fetches_))); }

  /// The address of what the caller wants fetched after so many elements.
  Value* fetched_after(Value* elements) {
    Value* line = ir_.CreateMul(elements, lines_of_part());
    return ir_.CreateGEP(ir_.getInt8Ty(), argument(10), ir_.CreateMul(ir_.CreateLShr(line, std::countr_zero(kUnroll)), argument(11)));
  }

  /// Fetches the lines that come with an unrolled part.
  void fetch() {
    Value* address = ahead_;
    for (auto i = llvm_backend::lines_of_part(fetches_); i-- > 0;) {
      prefetch(address, kSecondLevel);
      if (i > 0) address = ir_.CreateGEP(ir_.getInt8Ty(), address, argument(11));
    }
  }

  /// One step in k: a row of b, so many after the first of the loop's body, and a broadcast of each row of a.
  void multiply(Value* k, std::uint64_t number, std::vector<Value*>& sums) {
    Value* row = number == 0 ? b_row_ : ir_.CreateGEP(element_, b_row_, rows_apart_[number]);
    std::vector<Value*> b;
    const llvm::Align align(static_cast<std::uint64_t>(bytes_));
    for (int j = 0; j < vectors_; ++j) {
      Value* address = ir_.CreateConstGEP1_64(element_, row, static_cast<std::uint64_t>(j * lanes_));
      if (reads_ == Reads::columns) b.push_back(ir_.CreateMaskedLoad(vector_, address, align, masks_[static_cast<std::size_t>(j)], llvm::Constant::getNullValue(vector_)));
      else b.push_back(ir_.CreateAlignedLoad(vector_, address, align));
      if (fetches_ == Fetches::own_rows && j * lanes_ * bytes_ % kLine == 0) prefetch(ir_.CreateConstGEP1_64(ir_.getInt8Ty(), address, kPrefetchBytes), kFirstLevel);
    }
    for (int i = 0; i < shape_.rows; ++i) {
      Value* a = ir_.CreateVectorSplat(static_cast<unsigned>(lanes_), ir_.CreateAlignedLoad(element_, ir_.CreateGEP(element_, a_rows_[static_cast<std::size_t>(i)], k), align));
      for (int j = 0; j < vectors_; ++j) {
        Value*& sum = sums[static_cast<std::size_t>(i * vectors_ + j)];
        if (target_.has_fma) sum = ir_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_}, {a, b[static_cast<std::size_t>(j)], sum});
        else sum = ir_.CreateFAdd(sum, ir_.CreateFMul(a, b[static_cast<std::size_t>(j)]));
      }
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
  int bytes_, lanes_ = 0, vectors_ = 0;
  Fetches fetches_;
  Reads reads_;
  llvm::Type* element_ = nullptr;
  llvm::FixedVectorType* vector_ = nullptr;
  llvm::Function* function_ = nullptr;
  Value *b_row_ = nullptr, *ahead_ = nullptr;  // where the next row of b lies, and what is fetched next
  Value* ahead_apart_ = nullptr;               // of the parts that are fetched, in bytes
  std::vector<Value*> a_rows_, c_rows_, masks_, rows_apart_;
};

}  // namespace

void emit_microkernel(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, const std::string& name, Fetches fetches, Reads reads) {
  Emitter(module, target, dtype, shape, fetches, reads).emit(name);
}

}  // namespace tenon::llvm_backend
