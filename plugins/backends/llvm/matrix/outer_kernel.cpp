#include "matrix/outer_kernel.h"

#include <vector>

#include "matrix/tile_emitter.h"

namespace tenon::llvm_backend {
namespace {

class OuterEmitter : public TileEmitter {
 public:
  OuterEmitter(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, Reads reads) : TileEmitter(module, target, dtype, shape), reads_(reads) {}

  void emit(const std::string& name) {
    auto* p = ir_.getPtrTy();
    auto* n = ir_.getInt64Ty();
    declare(name, {p, n, p, p, n, p, n, n, n, n});
    if (reads_ == Reads::columns) masks_ = column_masks();
    place_rows();
    Value* last_row = ir_.CreateSub(argument(7), ir_.getInt64(1));
    for (int i = 0; i < shape_.rows; ++i) rows_.push_back(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.getInt64(static_cast<std::uint64_t>(i)), last_row));
    const std::vector<Value*> zeros(static_cast<std::size_t>(shape_.rows * vectors_), llvm::Constant::getNullValue(vector_));
    finish(loop(ir_.getInt64(0), argument(1), ir_.getInt64(1), zeros, [&](Value* step, std::vector<Value*>& sums) { multiply(step, sums); }));
  }

 private:
  void multiply(Value* step, std::vector<Value*>& sums) {
    auto* offset = ir_.getInt64Ty();
    Value* entry = ir_.CreateGEP(offset, argument(0), ir_.CreateShl(step, ir_.getInt64(1)));
    Value* a = ir_.CreateGEP(element_, argument(2), ir_.CreateAlignedLoad(offset, entry, llvm::Align(8)));
    Value* row = ir_.CreateGEP(element_, argument(5), ir_.CreateAlignedLoad(offset, ir_.CreateConstGEP1_64(offset, entry, 1), llvm::Align(8)));
    std::vector<Value*> b;
    for (int j = 0; j < vectors_; ++j) b.push_back(read_columns(ir_.CreateConstGEP1_64(element_, row, static_cast<std::uint64_t>(j * lanes_)), j, reads_));
    for (int i = 0; i < shape_.rows; ++i) multiply_row(i, ir_.CreateGEP(element_, a, rows_[static_cast<std::size_t>(i)]), b, sums);
  }

  Reads reads_;
  std::vector<Value*> rows_;  // of a run of a: those that are not there read the last one
};

}  // namespace

void emit_outer_kernel(llvm::Module& module, const Target& target, DType dtype, const TileShape& shape, const std::string& name, Reads reads) {
  OuterEmitter(module, target, dtype, shape, reads).emit(name);
}

}  // namespace tenon::llvm_backend
