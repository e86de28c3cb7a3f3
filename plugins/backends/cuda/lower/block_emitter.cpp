#include "lower/block_emitter.h"

#include "core/base/error.h"

namespace tenon::cuda {

using codegen::Loop;
using codegen::Stage;
using codegen::StageKind;
using llvm::Value;

void emit_block_kernel(llvm::Module& module, const codegen::Kernel& kernel, const Schedule& schedule, const PtxIsa& isa, const std::string& name) {
  BlockEmitter(module, kernel, schedule, isa).emit(name);
}

void BlockEmitter::begin(const std::string& name) {
  function_ = isa_.make_kernel(b_, kernel_, schedule_, name);
  for (const Loop& l : kernel_.outer) symbol_depth_[l.variable.value] = 1;
  const bool rows = schedule_.kind == Schedule::Kind::rows || kernel_.outer.empty();
  row_depth_ = rows ? 1 : 2;
  if (!rows) symbol_depth_[kernel_.outer.back().variable.value] = 2;
  if (schedule_.kind == Schedule::Kind::tiles) symbol_depth_[kernel_.outer[schedule_.across].variable.value] = 2;
  for (std::size_t i = 0; i < kernel_.inner.size(); ++i) symbol_depth_[kernel_.inner[i].variable.value] = row_depth_ + 1 + i;
  scopes_.emplace_back();
  enter(llvm::BasicBlock::Create(ir_.getContext(), "entry", function_));
}

void BlockEmitter::emit(const std::string& name) {
  begin(name);
  isa_.begin(b_);
  const auto wide = [&](Value* v) { return ir_.CreateZExt(v, ir_.getInt64Ty()); };
  Value *block = wide(isa_.block_number(b_)), *thread = wide(isa_.thread_number(b_));
  if (schedule_.runs > 1) {
    Value* blocks = scalar(schedule_.blocks());
    run_ = ir_.CreateUDiv(block, blocks), block = ir_.CreateURem(block, blocks);
  }
  if (schedule_.kind == Schedule::Kind::columns) {
    columns(block, thread);
  } else if (schedule_.kind == Schedule::Kind::tiles) {
    within([&] { tile(block, thread); });
  } else {
    Value* number = ir_.CreateAdd(ir_.CreateMul(block, ir_.getInt64(kBlock)), thread);
    thread_ = ir_.CreateURem(number, ir_.getInt64(schedule_.team));
    Value* unit = ir_.CreateUDiv(number, ir_.getInt64(schedule_.team));
    const Body body = [&] { schedule_.kind == Schedule::Kind::points ? points(unit) : row(unit); };
    // A team that is a block has its unit: no thread of it may leave before the others.
    where(schedule_.team == kBlock ? ir_.getTrue() : ir_.CreateICmpULT(unit, scalar(schedule_.units)), body);
  }
  ir_.CreateRetVoid();
}

void BlockEmitter::within(const Body& body) {
  auto* inside = llvm::BasicBlock::Create(ir_.getContext(), "within", function_);
  ir_.CreateBr(inside);
  scopes_.emplace_back();
  enter(inside);
  body();
  auto* end = ir_.GetInsertBlock();
  scopes_.pop_back();
  enter(end);
}

void BlockEmitter::where(Value* condition, const Body& body) {
  auto* inside = llvm::BasicBlock::Create(ir_.getContext(), "inside", function_);
  auto* after = llvm::BasicBlock::Create(ir_.getContext(), "after", function_);
  ir_.CreateCondBr(condition, inside, after);
  scopes_.emplace_back();
  enter(inside);
  body();
  ir_.CreateBr(after);
  scopes_.pop_back();
  enter(after);
}

/// What follows is for so many lanes: 1 is a point without lanes.
void BlockEmitter::on_lanes(unsigned lanes) {
  b_.set_lanes(lanes);
  lane_ = lanes > 1 ? std::optional(schedule_.lane_loop(kernel_)->variable) : std::nullopt;
  results_vary_ = schedule_.kind != Schedule::Kind::rows;
  op_varies_.clear();
}

Value* BlockEmitter::find_vector(Value* unit) {
  const std::int64_t lanes = schedule_.lanes;
  Value* within = unit;
  if (kernel_.outer.size() > 1) {
    Value* vectors = scalar(floor_div(kernel_.outer.back().extent + Dim(lanes - 1), Dim(lanes)));
    within = ir_.CreateURem(unit, vectors);
    decode_outer(ir_.CreateUDiv(unit, vectors), kernel_.outer.size() - 1);
  }
  return ir_.CreateMul(within, ir_.getInt64(static_cast<std::uint64_t>(lanes)));
}

void BlockEmitter::points(Value* unit) {
  if (kernel_.outer.empty()) return on_lanes(1), stages();
  const Loop& last = kernel_.outer.back();
  const std::int64_t lanes = schedule_.lanes;
  Value* extent = scalar(last.extent);
  Value* low = find_vector(unit);
  const auto at = [&](unsigned count) {
    return [&, count] {
      here().symbols[last.variable.value] = low;
      on_lanes(count);
      stages();
    };
  };
  if (lanes == 1) return where(ir_.getTrue(), at(1));
  const bool whole = last.extent.is_constant() && last.extent.constant() % lanes == 0;
  Value* fits = whole ? static_cast<Value*>(ir_.getTrue()) : ir_.CreateICmpULE(ir_.CreateAdd(low, ir_.getInt64(static_cast<std::uint64_t>(lanes))), extent);
  where(fits, at(static_cast<unsigned>(lanes)));
  if (whole) return;
  on_lanes(1);
  // At most a vector's points, in a loop that whole vectors do not enter.
  loop(ir_.CreateSelect(fits, extent, low), extent, 1, false, last.variable, {}, [&](Value*, Carried) {
    stages();
    return Carried{};
  });
}

/// The vectors of a block lie side by side, and so do the threads of a warp; the threads of a team are in different warps.
void BlockEmitter::columns(Value* block, Value* thread) {
  const std::uint64_t side_by_side = kBlock / schedule_.team;
  const bool alone = schedule_.team == 1;
  thread_ = ir_.CreateUDiv(thread, ir_.getInt64(side_by_side));
  Value* unit = ir_.CreateAdd(ir_.CreateMul(block, ir_.getInt64(side_by_side)), ir_.CreateURem(thread, ir_.getInt64(side_by_side)));
  Value* units = scalar(schedule_.units);
  Value* has_unit = ir_.CreateICmpULT(unit, units);
  if (!alone) inside_ = has_unit, unit = ir_.CreateSelect(has_unit, unit, ir_.CreateSub(units, ir_.getInt64(1)));
  const Body body = [&] {
    Value* low = find_vector(unit);
    within([&] {
      here().symbols[kernel_.outer.back().variable.value] = low;
      on_lanes(schedule_.lanes);
      stages();
    });
  };
  alone ? where(has_unit, body) : within(body);
}

void BlockEmitter::row(Value* unit) {
  decode_outer(unit, kernel_.outer.size());
  stages();
}

void BlockEmitter::stages() {
  for (const Stage& stage : kernel_.stages) {
    if (stage.kind == StageKind::reduce) reduce(stage);
    else if (stage.kind == StageKind::map && !kernel_.inner.empty()) map(stage);
    else row_stage(stage);
  }
}

/// One thread of a team stores.
void BlockEmitter::row_stage(const Stage& stage) {
  if (schedule_.team == 1 || schedule_.kind == Schedule::Kind::tiles) return store_all(stage);
  if (schedule_.kind == Schedule::Kind::rows) on_lanes(1);
  for (const codegen::Store& s : stage.stores) value(s.value);
  Value* first = ir_.CreateICmpEQ(thread_, ir_.getInt64(0));
  where(inside_ ? ir_.CreateAnd(first, inside_) : first, [&] { store_all(stage); });
}

/// Computes all values before the first is stored: a store may go over what another value is made of.
void BlockEmitter::store_all(const Stage& stage) {
  if (kernel_.scatter) return scatter(stage.stores[0]);
  if (stage.stores.size() > 1)
    for (const codegen::Store& s : stage.stores) value(s.value);
  for (const codegen::Store& s : stage.stores) store(s);
}

bool BlockEmitter::has_vectors() const {
  const Dim& extent = kernel_.inner.back().extent;
  return schedule_.lanes > 1 && !(extent.is_constant() && extent.constant() < schedule_.lanes);
}

bool BlockEmitter::has_tail() const {
  const Dim& extent = kernel_.inner.back().extent;
  return !has_vectors() || !extent.is_constant() || extent.constant() % schedule_.lanes != 0;
}

/// Where the vectors of the last inner loop end.
Value* BlockEmitter::whole_vectors() {
  if (!has_vectors()) return ir_.getInt64(0);
  const std::int64_t lanes = schedule_.lanes;
  const Dim extent = kernel_.inner.back().extent;
  return scalar(floor_div(extent, Dim(lanes)) * Dim(lanes));
}

BlockEmitter::Carried BlockEmitter::shared_loop(Value* low, Value* high, unsigned lanes, Carried carried, const CarriedBody& body) {
  Value* first = ir_.CreateAdd(low, ir_.CreateMul(thread_, ir_.getInt64(lanes)));
  auto values = loop(first, high, static_cast<std::int64_t>(schedule_.team) * lanes, false, kernel_.inner.back().variable, std::move(carried), body);
  values.pop_back();
  return values;
}

bool BlockEmitter::keeps_rows() const { return std::ranges::any_of(kernel_.buffers, &codegen::Buffer::row); }

BlockEmitter::Carried BlockEmitter::kept_loop(Carried carried, const CarriedBody& body, Value* only) {
  const codegen::Loop& row = kernel_.inner.back();
  const unsigned along = schedule_.kind == Schedule::Kind::columns ? 1 : schedule_.lanes;
  const std::int64_t extent = row.extent.constant(), all = std::int64_t{schedule_.team} * along;
  Value* first = ir_.CreateMul(thread_, ir_.getInt64(along));
  for (pass_ = 0; pass_ * all < extent; ++pass_) {
    Value* position = ir_.CreateAdd(first, ir_.getInt64(pass_ * static_cast<std::uint64_t>(all)));
    Carried next;
    const Body one = [&] {
      here().symbols[row.variable.value] = position;
      next = body(position, carried);
    };
    Value* runs = only;
    if ((pass_ + 1) * all > extent) {
      Value* exists = ir_.CreateICmpSLT(position, ir_.getInt64(static_cast<std::uint64_t>(extent)));
      runs = only ? ir_.CreateAnd(only, exists) : exists;
    }
    if (!runs) {
      within(one);
      carried = std::move(next);
      continue;
    }
    auto* before = ir_.GetInsertBlock();
    const auto known = kept_;
    llvm::BasicBlock* end = nullptr;
    where(runs, [&] { one(), end = ir_.GetInsertBlock(); });
    const auto either = [&](Value* there, Value* otherwise) {
      auto* phi = ir_.CreatePHI(there->getType(), 2);
      phi->addIncoming(there, end), phi->addIncoming(otherwise, before);
      return phi;
    };
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i] = either(next[i], carried[i]);
    for (auto& [place, value] : kept_)
      if (!known.contains(place)) value = either(value, llvm::PoisonValue::get(value->getType()));
  }
  return carried;
}

void BlockEmitter::map(const Stage& stage) {
  const auto over = [&](Value* low, Value* high, unsigned lanes) {
    for_inner(0, kernel_.inner.size() - 1, [&] {
      shared_loop(low, high, lanes, {}, [&](Value*, Carried) {
        store_all(stage);
        return Carried{};
      });
    });
  };
  if (keeps_rows()) {
    on_lanes(schedule_.lanes);
    kept_loop({}, [&](Value*, Carried) { return store_all(stage), Carried{}; }, inside_);
    return;
  }
  Value* extent = scalar(kernel_.inner.back().extent);
  if (schedule_.kind == Schedule::Kind::columns) {
    return over(ir_.getInt64(0), inside_ ? ir_.CreateSelect(inside_, extent, ir_.getInt64(0)) : extent, 1);
  }
  Value* end = whole_vectors();
  if (has_vectors()) on_lanes(schedule_.lanes), over(ir_.getInt64(0), end, schedule_.lanes);
  if (has_tail()) on_lanes(1), over(end, extent, 1);
}

}  // namespace tenon::cuda
