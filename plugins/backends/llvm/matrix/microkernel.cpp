#include "matrix/microkernel.h"

#include <llvm/IR/Intrinsics.h>

#include <bit>
#include <vector>

#include "matrix/amx_kernel.h"
#include "matrix/tile_emitter.h"

namespace tenon::llvm_backend {

using llvm::BasicBlock;
using llvm::Value;

int tile_columns(unsigned lanes, DType dtype) {
  const int vectors = lanes == 16 ? 4 : 2;
  return vectors * static_cast<int>(lanes * 4 / size_of(compute_type(dtype)));
}

TileShape narrow_tile_shape(const Target& target, DType dtype) {
  if (has_tile_registers(target, dtype)) return {kAmxTile.rows, kAmxTile.columns / 2};
  return {8, tile_shape(target, dtype).columns / 2};  // more rows have more addresses than registers
}

TileShape streaming_tile_shape(const Target& target, DType dtype) { return {4, tile_shape(target, dtype).columns}; }

TileShape row_tile_shape(const Target& target, DType dtype) { return {1, 4 * tile_shape(target, dtype).columns}; }

bool has_tile_registers(const Target& target, DType dtype) { return target.has_bf16_tiles && dtype == DType::bf16; }

TileShape tile_shape(const Target& target, DType dtype) {
  if (has_tile_registers(target, dtype)) return kAmxTile;
  return {target.vector_bytes >= 32 ? 6 : 4, tile_columns(target.lanes(), dtype)};
}

namespace {

constexpr std::uint64_t kUnroll = kUnrolled;
constexpr int kLine = 64;
constexpr int kPrefetchBytes = 2048;  // ahead in b: gains up to a tenth once b comes from the second-level cache

class Emitter : public TileEmitter {
 public:
  Emitter(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, Fetches fetches, Reads reads, Pairs pairs)
      : TileEmitter(module, target, dtype, shape), fetches_(fetches), reads_(reads), lying_(pairs) {}

  void emit(const std::string& name) {
    declare_microkernel(name);
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
    for (int j = 0; j < vectors_; ++j) {
      Value* address = ir_.CreateConstGEP1_64(lying_ == Pairs::in_rows ? ir_.getInt16Ty() : element_, row, static_cast<std::uint64_t>(j * lanes_));
      b.push_back(lying_ == Pairs::in_rows ? read_pairs(address, j, argument(2), reads_) : read_columns(address, j, reads_));
      if (fetches_ == Fetches::own_rows && j * lanes_ * bytes_ % kLine == 0) prefetch(ir_.CreateConstGEP1_64(ir_.getInt8Ty(), address, kPrefetchBytes), kFirstLevel);
    }
    for (int i = 0; i < shape_.rows; ++i) multiply_row(i, ir_.CreateGEP(element_, a_rows_[static_cast<std::size_t>(i)], k), b, sums);
  }

  Fetches fetches_;
  Reads reads_;
  Pairs lying_;
  Value *b_row_ = nullptr, *ahead_ = nullptr;  // where the next row of b lies, and what is fetched next
  Value* ahead_apart_ = nullptr;               // of the parts that are fetched, in bytes
  std::vector<Value*> a_rows_, rows_apart_;
};

}  // namespace

void emit_microkernel(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, const std::string& name, Fetches fetches, Reads reads, Pairs pairs) {
  Emitter(module, target, dtype, shape, fetches, reads, pairs).emit(name);
}

}  // namespace tenon::llvm_backend
