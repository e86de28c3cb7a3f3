// Transposition: a block reads a square along one loop, and uses it along another.
#include "lower/block_emitter.h"

namespace tenon::cuda {

using llvm::Value;

namespace {

/// Rows of a tile that the threads of a block have at once, and how often they begin anew.
constexpr unsigned kRowsAtOnce = kBlock / kTileSide, kPasses = kTileSide / kRowsAtOnce;

bool is_whole(const codegen::Loop& loop) { return loop.extent.is_constant() && loop.extent.constant() % kTileSide == 0; }

}  // namespace

/// Where a thread is in the tile: at a point of both loops, or, past their ends, at the last one.
void BlockEmitter::place_in_tile(Value* row, Value* column) {
  here().symbols[kernel_.outer[schedule_.across].variable.value] = row;
  here().symbols[kernel_.outer.back().variable.value] = column;
}

/// The place of an element of a transposed load in shared memory.
Value* BlockEmitter::in_tile(std::size_t load, Value* row, Value* column) {
  std::size_t bytes = 0, before = 0;
  for (std::size_t i = 0; i < schedule_.transposed.size(); ++i) {
    if (i == load) before = bytes;
    bytes += kTileSide * kTileStride * size_of(kernel_.buffers[kernel_.operations[schedule_.transposed[i]].payload].dtype);
  }
  Value* memory = isa_.shared_memory(b_, (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  Value* start = ir_.CreateConstGEP1_64(ir_.getInt8Ty(), memory, before);
  llvm::Type* type = b_.storage_type(kernel_.buffers[kernel_.operations[schedule_.transposed[load]].payload].dtype);
  return ir_.CreateGEP(type, start, ir_.CreateAdd(ir_.CreateMul(column, ir_.getInt64(kTileStride)), row));
}

void BlockEmitter::tile(Value* unit, Value* thread) {
  const codegen::Loop &last = kernel_.outer.back(), &across = kernel_.outer[schedule_.across];
  Value* rest = unit;
  const auto next = [&](const Dim& extent) {
    Value* count = scalar(extent);
    Value* index = ir_.CreateURem(rest, count);
    rest = ir_.CreateUDiv(rest, count);
    return index;
  };
  const auto tiles = [](const codegen::Loop& l) { return floor_div(l.extent + Dim(kTileSide - 1), Dim(kTileSide)); };
  Value* side = ir_.getInt64(kTileSide);
  Value* column = ir_.CreateMul(next(tiles(last)), side);
  Value* row = ir_.CreateMul(next(tiles(across)), side);
  for (std::size_t i = kernel_.outer.size() - 1; i-- > 0;)
    if (i != schedule_.across) here().symbols[kernel_.outer[i].variable.value] = next(kernel_.outer[i].extent);
  on_lanes(1);
  Value *x = ir_.CreateURem(thread, side), *y = ir_.CreateUDiv(thread, side);
  const bool whole = is_whole(last) && is_whole(across);
  const auto at = [&](Value* from, Value* offset, const codegen::Loop& loop) {
    Value* place = ir_.CreateAdd(from, offset);
    return is_whole(loop) ? place : ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, place, ir_.CreateSub(scalar(loop.extent), ir_.getInt64(1)));
  };
  const auto row_of = [&](unsigned pass) { return ir_.CreateAdd(y, ir_.getInt64(pass * kRowsAtOnce)); };
  // All is read before the first is stored, so that the reads are under way together.
  std::vector<Value*> read;
  for (unsigned pass = 0; pass < kPasses; ++pass)
    within([&] {
      place_in_tile(at(row, x, across), at(column, row_of(pass), last));
      for (const codegen::OpId id : schedule_.transposed) read.push_back(b_.to_storage(value(id), kernel_.buffers[kernel_.operations[id].payload].dtype));
    });
  for (unsigned pass = 0; pass < kPasses; ++pass)
    for (std::size_t i = 0; i < schedule_.transposed.size(); ++i) ir_.CreateStore(read[pass * schedule_.transposed.size() + i], in_tile(i, x, row_of(pass)));
  isa_.meet(b_);
  for (unsigned pass = 0; pass < kPasses; ++pass) {
    Value *my_row = ir_.CreateAdd(row, row_of(pass)), *my_column = ir_.CreateAdd(column, x);
    const Body body = [&] {
      place_in_tile(my_row, my_column);
      at_ = InTile{row_of(pass), x};
      stages();
    };
    Value* there = ir_.CreateAnd(ir_.CreateICmpSLT(my_row, scalar(across.extent)), ir_.CreateICmpSLT(my_column, scalar(last.extent)));
    whole ? within(body) : where(there, body);
  }
}

}  // namespace tenon::cuda
