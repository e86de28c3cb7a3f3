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
  row_depth_ = 1;
  for (const Loop& l : kernel_.outer) symbol_depth_[l.variable.value] = 1;
  for (std::size_t i = 0; i < kernel_.inner.size(); ++i) symbol_depth_[kernel_.inner[i].variable.value] = 2 + i;
  if (const Loop* last = schedule_.lane_loop(kernel_); last && schedule_.kind == Schedule::Kind::points) {
    row_depth_ = 2;
    symbol_depth_[last->variable.value] = 2;
  }
  scopes_.emplace_back();
  enter(llvm::BasicBlock::Create(ir_.getContext(), "entry", function_));
}

void BlockEmitter::emit(const std::string& name) {
  begin(name);
  const auto wide = [&](Value* v) { return ir_.CreateZExt(v, ir_.getInt64Ty()); };
  Value* number = ir_.CreateAdd(ir_.CreateMul(wide(isa_.block_number(b_)), ir_.getInt64(kBlock)), wide(isa_.thread_number(b_)));
  thread_ = ir_.CreateURem(number, ir_.getInt64(schedule_.team));
  Value* unit = ir_.CreateUDiv(number, ir_.getInt64(schedule_.team));
  // A team that is a block has its unit: no thread of it may leave before the others.
  const Body body = [&] { schedule_.kind == Schedule::Kind::points ? points(unit) : row(unit); };
  where(schedule_.team == kBlock ? ir_.getTrue() : ir_.CreateICmpULT(unit, scalar(schedule_.units)), body);
  ir_.CreateRetVoid();
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
  results_vary_ = schedule_.kind == Schedule::Kind::points;
  op_varies_.clear();
}

void BlockEmitter::points(Value* unit) {
  if (kernel_.outer.empty()) return on_lanes(1), stages();
  const Loop& last = kernel_.outer.back();
  const std::int64_t lanes = schedule_.lanes;
  Value* extent = scalar(last.extent);
  Value* within = unit;
  if (kernel_.outer.size() > 1) {
    Value* vectors = scalar(floor_div(last.extent + Dim(lanes - 1), Dim(lanes)));
    within = ir_.CreateURem(unit, vectors);
    decode_outer(ir_.CreateUDiv(unit, vectors), kernel_.outer.size() - 1);
  }
  Value* low = ir_.CreateMul(within, ir_.getInt64(static_cast<std::uint64_t>(lanes)));
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

void BlockEmitter::row(Value* unit) {
  decode_outer(unit, kernel_.outer.size());
  stages();
}

void BlockEmitter::stages() {
  for (const Stage& stage : kernel_.stages) {
    if (stage.kind == StageKind::reduce) reduce(stage);
    else if (schedule_.kind == Schedule::Kind::points) store_all(stage);
    else if (stage.kind == StageKind::map) map(stage);
    else {
      on_lanes(1);
      for (const codegen::Store& s : stage.stores) value(s.value);
      where(ir_.CreateICmpEQ(thread_, ir_.getInt64(0)), [&] { store_all(stage); });
    }
  }
}

/// Computes all values before the first is stored: a store may go over what another value is made of.
void BlockEmitter::store_all(const Stage& stage) {
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

void BlockEmitter::map(const Stage& stage) {
  const auto over = [&](Value* low, Value* high, unsigned lanes) {
    on_lanes(lanes);
    for_inner(0, kernel_.inner.size() - 1, [&] {
      shared_loop(low, high, lanes, {}, [&](Value*, Carried) {
        store_all(stage);
        return Carried{};
      });
    });
  };
  Value* end = whole_vectors();
  Value* extent = scalar(kernel_.inner.back().extent);
  if (has_vectors()) over(ir_.getInt64(0), end, schedule_.lanes);
  if (has_tail()) over(end, extent, 1);
}

}  // namespace tenon::cuda
