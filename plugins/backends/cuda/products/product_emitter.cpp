#include "products/product_emitter.h"

#include <algorithm>

#include "core/base/error.h"
#include "products/attention_emitter.h"

namespace tenon::cuda {

using codegen::Lanes;
using codegen::Loop;
using codegen::OperationKind;
using llvm::Value;

void emit_kernel(llvm::Module& module, const codegen::Kernel& kernel, const Schedule& schedule, const PtxIsa& isa, const std::string& name) {
  if (schedule.attention) AttentionEmitter(module, kernel, schedule, isa).emit(name);
  else if (schedule.product) ProductEmitter(module, kernel, schedule, isa).emit(name);
  else emit_block_kernel(module, kernel, schedule, isa, name);
}

bool ProductEmitter::has_short_indices(const codegen::Kernel& kernel) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 29;
  const auto is_short = [](const codegen::Buffer& buffer) { return buffer.bytes.is_constant() && buffer.bytes.constant() < kMostBytes; };
  const auto may_be_long = [&](const codegen::Operation& op) { return op.kind == OperationKind::checked || codegen::is_computed(op.offset); };
  const auto stores_short = [&](const codegen::Stage& stage) { return std::ranges::none_of(stage.stores, [&](const codegen::Store& s) { return codegen::is_computed(s.offset); }); };
  return std::ranges::all_of(kernel.buffers, is_short) && std::ranges::none_of(kernel.operations, may_be_long) && std::ranges::all_of(kernel.stages, stores_short);
}

/// The block's memory, and where its threads stand.
void ProductEmitter::begin(const std::string& name, unsigned shared_bytes) {
  function_ = isa_.make_kernel(b_, kernel_, schedule_, name);
  for (const Loop& l : product_.batch) symbol_depth_[l.variable.value] = kBatchDepth;
  scopes_.emplace_back();
  enter(llvm::BasicBlock::Create(ir_.getContext(), "entry", function_));
  isa_.begin(b_);
  thread32_ = isa_.thread_number(b_);
  memory_ = isa_.large_shared_memory(b_, shared_bytes, product_.by_warpgroups ? kSwizzleAlignment : kVectorBytes);
  lane_number_ = ir_.CreateURem(thread32_, number(kWarp));
  Value* warp = ir_.CreateUDiv(thread32_, number(kWarp));
  group_ = ir_.CreateUDiv(warp, number(kBlock / kWarp / product_.groups));
  warp = ir_.CreateURem(warp, number(kBlock / kWarp / product_.groups));
  warp_row_ = ir_.CreateMul(ir_.CreateURem(warp, number(product_.warps_down)), number(product_.block_rows / product_.warps_down));
  warp_column_ = ir_.CreateMul(ir_.CreateUDiv(warp, number(product_.warps_down)), number(product_.block_columns / warps_across()));
}

void ProductEmitter::emit(const std::string& name) {
  begin(name, product_.shared_bytes());
  within([&] {
    find_block(isa_.block_number(b_));
    Carried made = sums();
    isa_.wait_for_copies(b_, 0);
    isa_.meet(b_);
    put_sums(product_.is_exact() ? exact_where_odd(std::move(made)) : std::move(made));
    finish_sums();
  });
  ir_.CreateRetVoid();
}

/// Blocks that follow each other have the same columns: what they read of `b` is near.
void ProductEmitter::find_block(Value* block) {
  const auto tiles = [&](std::int64_t count) { return number(static_cast<unsigned>(count)); };
  const auto steps = static_cast<std::uint64_t>(product_.steps());
  first_step_ = ir_.getInt64(0), end_step_ = ir_.getInt64(steps);
  if (product_.cluster > 1) {
    part_ = isa_.number_in_cluster(b_);
    block = ir_.CreateUDiv(block, number(product_.cluster));
    const auto begin = [&](Value* part) { return ir_.CreateZExt(ir_.CreateUDiv(ir_.CreateMul(part, number(static_cast<unsigned>(steps))), number(product_.cluster)), ir_.getInt64Ty()); };
    first_step_ = begin(part_), end_step_ = begin(ir_.CreateAdd(part_, number(1)));
  }
  Value* row = ir_.CreateURem(block, tiles(product_.row_tiles()));
  Value* rest = ir_.CreateUDiv(block, tiles(product_.row_tiles()));
  Value* column = ir_.CreateURem(rest, tiles(product_.column_tiles()));
  decode(ir_.CreateUDiv(rest, tiles(product_.column_tiles())), product_.batch);
  sides_.push_back({product_, product_.a, kernel_.inner, product_.block_rows, product_.rows, 0, ir_.CreateMul(row, number(product_.block_rows))});
  sides_.push_back({product_, product_.b, kernel_.inner, product_.block_columns, product_.columns, product_.bytes(product_.a, product_.block_rows), ir_.CreateMul(column, number(product_.block_columns))});
}

void ProductEmitter::decode(Value* flat, std::span<const Loop> loops) {
  for (std::size_t i = loops.size(); i-- > 0;) {
    Value* index = flat;
    if (i > 0) {
      Value* extent = number(static_cast<unsigned>(loops[i].extent.constant()));
      index = ir_.CreateURem(flat, extent);
      flat = ir_.CreateUDiv(flat, extent);
    }
    here().symbols[loops[i].variable.value] = ir_.CreateZExtOrTrunc(index, index_type_);
  }
}

Value* ProductEmitter::shared(Value* bytes) { return ir_.CreateGEP(ir_.getInt8Ty(), memory_, bytes); }

/// Steps of the sum, each in one of a few stages of shared memory that are filled ahead.
ProductEmitter::Carried ProductEmitter::sums() {
  const unsigned ahead = product_.stages - 1;
  const auto stage_of = [&](Value* step) {
    Value* place = ir_.CreateMul(ir_.CreateURem(ir_.CreateTrunc(step, ir_.getInt32Ty()), number(product_.stages)), number(product_.stage_bytes()));
    return shared(ir_.CreateAdd(place, number(product_.laid_bytes())));
  };
  const auto load = [&](Value* step) {
    where(ir_.CreateICmpULT(step, end_step_), [&] { load_step(stage_of(step), step); });
    isa_.commit_copies(b_);
  };
  loop(first_step_, ir_.CreateAdd(first_step_, ir_.getInt64(ahead)), 1, false, SymbolId(), {}, [&](Value* step, Carried) {
    load(step);
    return Carried{};
  });
  const Carried none(std::size_t{4} * tiles_down() * tiles_across(), llvm::ConstantFP::get(ir_.getFloatTy(), 0));
  Carried all = loop(first_step_, end_step_, 1, false, SymbolId(), none, [&](Value* step, Carried before) {
    isa_.wait_for_copies(b_, ahead - 1);
    Value* next = ir_.CreateAdd(step, ir_.getInt64(ahead));
    if (product_.by_warpgroups) {  // they multiply while the threads load
      if (product_.lays_out) isa_.meet(b_), lay_out_right(stage_of(step));
      isa_.show_to_warpgroups(b_);
      isa_.meet(b_);
      const Carried sums = multiplied_by_warpgroup(stage_of(step), product_.is_exact() ? none : before);
      load(next);
      Carried made = isa_.wait_for_warpgroup(b_, sums);
      for (std::size_t i = 0; i < made.size() && product_.is_exact(); ++i) made[i] = ir_.CreateFAdd(before[i], made[i]);
      return made;
    }
    isa_.meet(b_);
    load(next);
    return multiplied(stage_of(step), std::move(before));
  });
  all.pop_back();  // the position
  return all;
}

Value* ProductEmitter::tile_of_sums(Value* row, Value* column, Value* group) {
  Value* place = ir_.CreateAdd(ir_.CreateMul(row, number(product_.sum_stride())), column);
  return ir_.CreateGEP(ir_.getFloatTy(), shared(ir_.CreateMul(group, number(product_.sum_bytes()))), place);
}

/// The sums of another block, or of this one where it has no others, for a vector of the result.
Value* ProductEmitter::sums_of(unsigned block, Value* place) {
  const unsigned lanes = product_.lanes;
  llvm::Type* type = lanes > 1 ? b_.widened(ir_.getFloatTy()) : ir_.getFloatTy();
  if (product_.cluster == 1) return ir_.CreateAlignedLoad(type, place, llvm::Align(std::min<std::uint64_t>(kVectorBytes, sizeof(float) * lanes)));
  Value* all = llvm::PoisonValue::get(type);
  for (unsigned at = 0; at < lanes; at += 4) {
    const auto some = isa_.load_from_cluster(b_, ir_.CreateGEP(ir_.getFloatTy(), place, number(at)), block, std::min(lanes, 4u));
    if (lanes == 1) return some[0];
    for (std::size_t i = 0; i < some.size(); ++i) all = ir_.CreateInsertElement(all, some[i], at + i);
  }
  return all;
}

Value* ProductEmitter::all_sums(Value* row, Value* column) {
  Value* sum = nullptr;
  for (unsigned block = 0; block < product_.cluster; ++block)
    for (unsigned group = 0; group < (sums_groups_first() ? 1 : product_.groups); ++group) {
      Value* mine = sums_of(block, tile_of_sums(row, column, number(group)));
      sum = sum ? ir_.CreateFAdd(sum, mine) : mine;
    }
  return sum;
}

/// Adds the sums of all groups up in those of the first: less is read from other blocks then.
void ProductEmitter::add_groups() {
  isa_.meet(b_);
  constexpr unsigned kAtOnce = 4;
  const unsigned across = product_.block_columns / kAtOnce, passes = product_.block_rows * across / kBlock;
  auto* four = llvm::FixedVectorType::get(ir_.getFloatTy(), kAtOnce);
  for (unsigned pass = 0; pass < passes; ++pass) {
    Value* at = ir_.CreateAdd(thread32_, number(pass * kBlock));
    Value *row = ir_.CreateUDiv(at, number(across)), *column = ir_.CreateMul(ir_.CreateURem(at, number(across)), number(kAtOnce));
    Value* sum = nullptr;
    for (unsigned group = 0; group < product_.groups; ++group) {
      Value* mine = ir_.CreateAlignedLoad(four, tile_of_sums(row, column, number(group)), llvm::Align(kVectorBytes));
      sum = sum ? ir_.CreateFAdd(sum, mine) : mine;
    }
    ir_.CreateAlignedStore(sum, tile_of_sums(row, column, number(0)), llvm::Align(kVectorBytes));
  }
}

void ProductEmitter::meet_all() { product_.cluster > 1 ? isa_.meet_cluster(b_) : isa_.meet(b_); }

/// Threads take vectors of the result side by side: the sums of all warps pass through shared memory.
void ProductEmitter::put_sums(const Carried& sums) {
  Value *row = ir_.CreateAdd(warp_row_, ir_.CreateUDiv(lane_number_, number(4))), *column = ir_.CreateAdd(warp_column_, ir_.CreateMul(ir_.CreateURem(lane_number_, number(4)), number(2)));
  for (unsigned m = 0, at = 0; m < tiles_down(); ++m)
    for (unsigned n = 0; n < tiles_across(); ++n)
      for (unsigned i = 0; i < 4; ++i, ++at)
        ir_.CreateStore(sums[at], tile_of_sums(ir_.CreateAdd(row, number(m * 16 + i / 2 * 8)), ir_.CreateAdd(column, number(n * 8 + i % 2)), group_));
}

void ProductEmitter::finish_sums() {
  if (sums_groups_first()) add_groups();
  meet_all();
  const unsigned across = product_.block_columns / product_.lanes, mine = across * product_.block_rows / product_.cluster;
  loop(ir_.getInt64(0), ir_.getInt64((mine + kBlock - 1) / kBlock), 1, false, SymbolId(), {}, [&](Value* pass, Carried) {
    Value* at = ir_.CreateAdd(thread32_, ir_.CreateMul(ir_.CreateTrunc(pass, ir_.getInt32Ty()), number(kBlock)));
    Value* has = mine % kBlock == 0 ? ir_.getTrue() : ir_.CreateICmpULT(at, number(mine));
    if (product_.cluster > 1) at = ir_.CreateAdd(at, ir_.CreateMul(part_, number(mine)));
    Value *down = ir_.CreateUDiv(at, number(across)), *along = ir_.CreateMul(ir_.CreateURem(at, number(across)), number(product_.lanes));
    Value *of_rows = ir_.CreateAdd(sides_[0].first, down), *of_columns = ir_.CreateAdd(sides_[1].first, along);
    Value* there = ir_.CreateAnd(ir_.CreateICmpULT(of_rows, number(static_cast<unsigned>(product_.rows))), ir_.CreateICmpULT(of_columns, number(static_cast<unsigned>(product_.columns))));
    where(ir_.CreateAnd(has, there), [&] {
      decode(of_rows, product_.a.loops);
      decode(of_columns, product_.b.loops);
      finish_vector(down, along);
    });
    return Carried{};
  });
  if (product_.cluster > 1) isa_.meet_cluster(b_);  // none ends while others read its memory
}

/// What follows the sums, of one vector; `row` and `column` of the block.
void ProductEmitter::finish_vector(Value* row, Value* column) {
  for (const auto* loops : {&product_.a.loops, &product_.b.loops})
    for (const Loop& l : *loops) symbol_depth_[l.variable.value] = depth();
  row_depth_ = depth();
  op_depth_.clear();
  on_lanes(product_.lanes);
  results_vary_ = product_.lanes > 1;
  Value* sum = all_sums(row, column);
  for (codegen::OpId id = 0; id < kernel_.operations.size(); ++id)
    if (kernel_.operations[id].kind == OperationKind::reduced) here().values[id] = {sum, DType::f32, product_.lanes > 1};
  store_all(kernel_.stages.back());
}

}  // namespace tenon::cuda
