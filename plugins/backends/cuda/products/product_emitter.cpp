#include "products/product_emitter.h"

#include "core/base/error.h"

namespace tenon::cuda {

using codegen::Lanes;
using codegen::Loop;
using codegen::OperationKind;
using llvm::Value;

void emit_kernel(llvm::Module& module, const codegen::Kernel& kernel, const Schedule& schedule, const PtxIsa& isa, const std::string& name) {
  if (schedule.product) ProductEmitter(module, kernel, schedule, isa).emit(name);
  else emit_block_kernel(module, kernel, schedule, isa, name);
}

void ProductEmitter::emit(const std::string& name) {
  function_ = isa_.make_kernel(b_, kernel_, schedule_, name);
  for (const Loop& l : product_.batch) symbol_depth_[l.variable.value] = kBatchDepth;
  scopes_.emplace_back();
  enter(llvm::BasicBlock::Create(ir_.getContext(), "entry", function_));
  isa_.begin(b_);
  thread32_ = isa_.thread_number(b_);
  memory_ = isa_.large_shared_memory(b_, product_.shared_bytes());
  lane_number_ = ir_.CreateURem(thread32_, number(kWarp));
  Value* warp = ir_.CreateUDiv(thread32_, number(kWarp));
  warp_row_ = ir_.CreateMul(ir_.CreateURem(warp, number(product_.warps_down)), number(product_.block_rows / product_.warps_down));
  warp_column_ = ir_.CreateMul(ir_.CreateUDiv(warp, number(product_.warps_down)), number(product_.block_columns / warps_across()));
  within([&] {
    find_block(isa_.block_number(b_));
    Carried made = sums();
    isa_.wait_for_copies(b_, 0);
    isa_.meet(b_);
    finish(product_.is_exact() ? exact_where_odd(std::move(made)) : std::move(made));
  });
  ir_.CreateRetVoid();
}

/// Blocks that follow each other have the same columns: what they read of `b` is near.
void ProductEmitter::find_block(Value* block) {
  const auto tiles = [&](std::int64_t count) { return number(static_cast<unsigned>(count)); };
  Value* row = ir_.CreateURem(block, tiles(product_.row_tiles()));
  Value* rest = ir_.CreateUDiv(block, tiles(product_.row_tiles()));
  Value* column = ir_.CreateURem(rest, tiles(product_.column_tiles()));
  decode(ir_.CreateUDiv(rest, tiles(product_.column_tiles())), product_.batch);
  sides_.push_back({product_.a, product_.block_rows, product_.rows, 0, ir_.CreateMul(row, number(product_.block_rows))});
  sides_.push_back({product_.b, product_.block_columns, product_.columns, product_.bytes(product_.a, product_.block_rows), ir_.CreateMul(column, number(product_.block_columns))});
}

void ProductEmitter::decode(Value* flat, std::span<const Loop> loops) {
  for (std::size_t i = loops.size(); i-- > 0;) {
    Value* index = flat;
    if (i > 0) {
      Value* extent = number(static_cast<unsigned>(loops[i].extent.constant()));
      index = ir_.CreateURem(flat, extent);
      flat = ir_.CreateUDiv(flat, extent);
    }
    here().symbols[loops[i].variable.value] = ir_.CreateZExt(index, ir_.getInt64Ty());
  }
}

Value* ProductEmitter::shared(Value* bytes) { return ir_.CreateGEP(ir_.getInt8Ty(), memory_, bytes); }

/// Steps of the sum, each in one of a few stages of shared memory that are filled ahead.
ProductEmitter::Carried ProductEmitter::sums() {
  const unsigned ahead = product_.stages - 1;
  const auto steps = static_cast<std::uint64_t>(product_.steps());
  const auto stage_of = [&](Value* step) {
    return shared(ir_.CreateMul(ir_.CreateURem(ir_.CreateTrunc(step, ir_.getInt32Ty()), number(product_.stages)), number(product_.stage_bytes())));
  };
  const auto load = [&](Value* step) {
    where(ir_.CreateICmpULT(step, ir_.getInt64(steps)), [&] { load_step(stage_of(step), step); });
    isa_.commit_copies(b_);
  };
  loop(ir_.getInt64(0), ir_.getInt64(ahead), 1, false, SymbolId(), {}, [&](Value* step, Carried) {
    load(step);
    return Carried{};
  });
  Carried initial(std::size_t{4} * tiles_down() * tiles_across(), llvm::ConstantFP::get(ir_.getFloatTy(), 0));
  Carried all = loop(ir_.getInt64(0), ir_.getInt64(steps), 1, false, SymbolId(), std::move(initial), [&](Value* step, Carried before) {
    isa_.wait_for_copies(b_, ahead - 1);
    isa_.meet(b_);
    load(ir_.CreateAdd(step, ir_.getInt64(ahead)));
    return multiplied(stage_of(step), std::move(before));
  });
  all.pop_back();  // the position
  return all;
}

Value* ProductEmitter::tile_of_sums(Value* row, Value* column) {
  return ir_.CreateGEP(ir_.getFloatTy(), memory_, ir_.CreateAdd(ir_.CreateMul(row, number(product_.sum_stride())), column));
}

/// Threads take vectors of the result side by side: the sums of all warps pass through shared memory.
void ProductEmitter::finish(const Carried& sums) {
  Value *row = ir_.CreateAdd(warp_row_, ir_.CreateUDiv(lane_number_, number(4))), *column = ir_.CreateAdd(warp_column_, ir_.CreateMul(ir_.CreateURem(lane_number_, number(4)), number(2)));
  for (unsigned m = 0, at = 0; m < tiles_down(); ++m)
    for (unsigned n = 0; n < tiles_across(); ++n)
      for (unsigned i = 0; i < 4; ++i, ++at)
        ir_.CreateStore(sums[at], tile_of_sums(ir_.CreateAdd(row, number(m * 16 + i / 2 * 8)), ir_.CreateAdd(column, number(n * 8 + i % 2))));
  isa_.meet(b_);
  const unsigned across = product_.block_columns / product_.lanes, count = across * product_.block_rows / kBlock;
  loop(ir_.getInt64(0), ir_.getInt64(count), 1, false, SymbolId(), {}, [&](Value* pass, Carried) {
    Value* at = ir_.CreateAdd(thread32_, ir_.CreateMul(ir_.CreateTrunc(pass, ir_.getInt32Ty()), number(kBlock)));
    Value *down = ir_.CreateUDiv(at, number(across)), *along = ir_.CreateMul(ir_.CreateURem(at, number(across)), number(product_.lanes));
    Value *of_rows = ir_.CreateAdd(sides_[0].first, down), *of_columns = ir_.CreateAdd(sides_[1].first, along);
    Value* there = ir_.CreateAnd(ir_.CreateICmpULT(of_rows, number(static_cast<unsigned>(product_.rows))), ir_.CreateICmpULT(of_columns, number(static_cast<unsigned>(product_.columns))));
    where(there, [&] {
      decode(of_rows, product_.a.loops);
      decode(of_columns, product_.b.loops);
      finish_vector(down, along);
    });
    return Carried{};
  });
}

/// What follows the sums, of one vector; `row` and `column` of the block.
void ProductEmitter::finish_vector(Value* row, Value* column) {
  for (const auto* loops : {&product_.a.loops, &product_.b.loops})
    for (const Loop& l : *loops) symbol_depth_[l.variable.value] = depth();
  row_depth_ = depth();
  op_depth_.clear();
  on_lanes(product_.lanes);
  results_vary_ = product_.lanes > 1;
  llvm::Type* type = product_.lanes > 1 ? b_.widened(ir_.getFloatTy()) : ir_.getFloatTy();
  Value* sum = ir_.CreateAlignedLoad(type, tile_of_sums(row, column), llvm::Align(std::min<std::uint64_t>(kVectorBytes, sizeof(float) * product_.lanes)));
  for (codegen::OpId id = 0; id < kernel_.operations.size(); ++id)
    if (kernel_.operations[id].kind == OperationKind::reduced) here().values[id] = {sum, DType::f32, product_.lanes > 1};
  store_all(kernel_.stages.back());
}

}  // namespace tenon::cuda
