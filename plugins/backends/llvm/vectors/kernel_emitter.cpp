#include "vectors/kernel_emitter.h"

#include <algorithm>

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "core/base/error.h"
#include "vectors/kernel_emitter_impl.h"

namespace tenon::llvm_backend {

using llvm::Value;
using P = ops::Primitive;

namespace {

bool has_wide_elements(const Operation& op) {
  return size_of(op.dtype) == 8 && op.kind != OperationKind::index && op.kind != OperationKind::constant;
}

/// Whether the vectors of a row may be told apart by where they lie.
bool has_parts(const Kernel& kernel) {
  const CpuSchedule& schedule = schedule_of(kernel);
  return schedule.has_lanes_outside(kernel) && !kernel.scatter && !schedule.tiled && !schedule.one_block;
}

}  // namespace

void emit_kernel(llvm::Module& module, const Kernel& kernel, const Target& target, const std::string& name) {
  const X86Isa isa(target);
  Kernel both = kernel;
  const auto interior = has_parts(kernel) ? add_interior(both) : std::nullopt;
  KernelEmitter(module, both, interior ? &*interior : nullptr, target, isa).emit(name);
}

void KernelEmitter::declare(const std::string& name) {
  auto* pointer = ir_.getPtrTy();
  auto* type = llvm::FunctionType::get(ir_.getVoidTy(), {pointer, pointer, ir_.getInt64Ty(), ir_.getInt64Ty(), pointer}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, b_.module());
  b_.isa().declare(*function_);
  for (unsigned i : {0u, 1u, 4u}) function_->addParamAttr(i, llvm::Attribute::NoAlias);
}

/// Adds the work of an operation that differs between points of the inner loops, and of what it needs of that kind.
void KernelEmitter::add_work(OpId id, std::set<OpId>& seen, double& work, bool& wide_elements) {
  const Operation& op = kernel_.operations[id];
  if (depth_of(id) <= row_depth_ || !seen.insert(id).second) return;
  work += work_of(op);
  wide_elements = wide_elements || has_wide_elements(op);
  for (OpId a : op.args)
    if (a != kNoOp) add_work(a, seen, work, wide_elements);
  op.offset.for_each_symbol([&](SymbolId s) {
    if (is_value(s)) add_work(s.value - kFirstValue, seen, work, wide_elements);
  });
}

/// The work at a point of one sweep over the inner loops.
void KernelEmitter::add_work(const Stage& sweep, std::set<OpId>& seen, double& work, bool& wide_elements) {
  for (auto r : sweep.reductions)
    for (OpId e : kernel_.reductions[r].elements) add_work(e, seen, work, wide_elements);
  for (const Store& s : sweep.stores) add_work(s.value, seen, work, wide_elements);
}

/// True where a load wraps, mirrors or is split into rows: the fewer lanes, the more vectors of them are one run.
bool KernelEmitter::has_short_runs() {
  for (OpId id = 0; id < kernel_.operations.size(); ++id) {
    const Operation& op = kernel_.operations[id];
    Affine affine;
    if (op.kind != OperationKind::load || !needed_[id] || !varies(op.offset)) continue;
    if (!is_computed(op.offset) && !lane_affine(op.offset, affine)) return true;  // what is computed is no run at all
  }
  return false;
}

/// Lanes of a loop of the kernel, or of one sweep over the inner loops. Several vectors at once hide latency where a point is cheap, and
/// read longer runs where lanes run over an outer loop; costly points fill the machine by themselves.
unsigned KernelEmitter::wide_lanes(const Stage* sweep) {
  if (schedule_.tiled) return target_.lanes();
  double work = 1;
  bool wide_elements = false;
  std::set<OpId> seen;
  if (sweep) {
    add_work(*sweep, seen, work, wide_elements);
  } else if (!kernel_.inner.empty()) {
    for (const Stage& s : *stages_) add_work(s, seen, work, wide_elements);
  } else {
    for (OpId id = 0; id < kernel_.operations.size(); ++id) {
      if (!needed_[id]) continue;
      work += work_of(kernel_.operations[id]);
      wide_elements = wide_elements || has_wide_elements(kernel_.operations[id]);
    }
  }
  const unsigned factor = has_short_runs() ? 1 : work <= 8 ? 4 : work <= 20 ? 2 : 1;
  unsigned lanes = target_.lanes() * std::min(factor, wide_elements ? 2u : 4u);
  while (lanes > target_.lanes() && schedule_.one_block % lanes != 0) lanes /= 2;  // whole tiles have no tail
  return lanes;
}

bool KernelEmitter::streams() const {
  if (schedule_.tiled || kernel_.scatter) return false;
  return written_bytes(kernel_) >= target_.streaming_bytes;
}

void KernelEmitter::emit(const std::string& name) {
  declare(name);
  const bool outside = schedule_.has_lanes_outside(kernel_);
  if (schedule_.has_lanes(kernel_)) lane_ = schedule_.lane_loop(kernel_);
  results_vary_ = !schedule_.lanes_inside;
  for (const Loop& l : kernel_.outer) symbol_depth_[l.variable.value] = 1;
  row_depth_ = outside ? (schedule_.tiled ? 3 : 2) : 1;
  if (schedule_.tiled) symbol_depth_[kernel_.outer[kernel_.outer.size() - 2].variable.value] = 2;
  if (outside) symbol_depth_[kernel_.outer.back().variable.value] = row_depth_;
  for (std::size_t i = 0; i < kernel_.inner.size(); ++i) symbol_depth_[kernel_.inner[i].variable.value] = row_depth_ + 1 + i;
  scopes_.emplace_back();
  enter(llvm::BasicBlock::Create(ir_.getContext(), "entry", function_));
  loop(function_->getArg(2), function_->getArg(3), 1, false, SymbolId(), {}, [&](Value* number, Carried) {
    unit(number);
    return Carried{};
  });
  if (streams()) ir_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  ir_.CreateRetVoid();
}

void KernelEmitter::unit(Value* number) {
  if (!schedule_.has_lanes(kernel_) || schedule_.lanes_inside) {
    decode_unit(number);
    return stages();
  }
  const Loop& lanes = kernel_.outer.back();
  const std::int64_t block = block_size(kernel_);
  Value* extent = scalar(lanes.extent);
  Value* within = number;
  if (schedule_.one_block) {
    decode_unit(number);
    within = ir_.getInt64(0);
  } else if (kernel_.outer.size() > 1) {
    Value* blocks = scalar(floor_div(lanes.extent + Dim(block - 1), Dim(block)));
    within = ir_.CreateURem(number, blocks);
    number = ir_.CreateUDiv(number, blocks);
    if (!schedule_.tiled) decode_unit(number);
  }
  Value* low = ir_.CreateMul(within, ir_.getInt64(block));
  Value* high = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateAdd(low, ir_.getInt64(block)), extent);
  if (interior_) return over_parts(low, high);
  if (!schedule_.tiled) return over_lanes(wide_lanes(), low, high, [&] { stages(); });
  const Loop& rows = kernel_.outer[kernel_.outer.size() - 2];
  Value* tiles = scalar(floor_div(rows.extent + Dim(kTileRows - 1), Dim(kTileRows)));
  Value* top = ir_.CreateMul(ir_.CreateURem(number, tiles), ir_.getInt64(kTileRows));
  decode_unit(ir_.CreateUDiv(number, tiles));
  Value* bottom = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateAdd(top, ir_.getInt64(kTileRows)), scalar(rows.extent));
  loop(top, bottom, 1, false, rows.variable, {}, [&](Value*, Carried) {
    over_lanes(wide_lanes(), low, high, [&] { stages(); });
    return Carried{};
  });
}

/// Finds the outer loop variables of a unit; the loops that run inside of it are left out.
void KernelEmitter::decode_unit(Value* number) {
  const std::size_t inside = schedule_.tiled ? 2 : schedule_.has_lanes_outside(kernel_) ? 1 : 0;
  decode_outer(number, kernel_.outer.size() - inside);
}

/// Iterations of the loop over lanes that whole vectors leave, where that is known: every range of it starts at a multiple of a vector.
std::optional<std::int64_t> KernelEmitter::left_by_vectors(std::int64_t lanes) const {
  const Dim& extent = (schedule_.lanes_inside ? kernel_.inner : kernel_.outer).back().extent;
  const bool starts_whole = schedule_.lanes_inside || schedule_.one_block || block_size(kernel_) % lanes == 0;
  if (!extent.is_constant() || !starts_whole) return {};
  return extent.constant() % lanes;
}

bool KernelEmitter::fills_vectors(std::int64_t lanes) const {
  const Dim& extent = (schedule_.lanes_inside ? kernel_.inner : kernel_.outer).back().extent;
  return !extent.is_constant() || extent.constant() >= lanes;
}

Value* KernelEmitter::mask_of_tail(Value* position, Value* high) {
  const unsigned lanes = target_.lanes();
  Value* left = ir_.CreateTrunc(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateSub(high, position), ir_.getInt64(lanes)), ir_.getInt32Ty());
  return ir_.CreateICmpULT(lane_numbers(ir_.getInt32Ty()), b_.splat(left));
}

void KernelEmitter::over_lanes(unsigned wide, Value* low, Value* high, const std::function<void()>& body) {
  Value* done = fills_vectors(wide) ? over_whole_vectors(wide, low, high, body) : low;
  if (left_by_vectors(wide) != 0) over_masked_vectors(done, high, left_by_vectors(target_.lanes()) == 0, body);
  else b_.set_lanes(target_.lanes());
}

/// Gives where it ended: less than a vector is left.
Value* KernelEmitter::over_whole_vectors(unsigned lanes, Value* low, Value* high, const std::function<void()>& body) {
  b_.set_lanes(lanes);
  return loop(low, high, lanes, true, schedule_.lane_loop(kernel_), {}, [&](Value*, Carried) {
    body();
    return Carried{};
  }).back();
}

void KernelEmitter::over_masked_vectors(Value* low, Value* high, bool whole, const std::function<void()>& body) {
  b_.set_lanes(target_.lanes());
  loop(low, high, target_.lanes(), whole, schedule_.lane_loop(kernel_), {}, [&](Value* position, Carried) {
    if (!whole) tail_mask_ = mask_of_tail(position, high);
    body();
    tail_mask_ = nullptr;
    return Carried{};
  });
}

/// Where whole vectors lie inside of all bounds: from a multiple of a vector on. None where the other loops are outside.
std::pair<Value*, Value*> KernelEmitter::inside(Value* low, Value* high) {
  const auto least = [&](Value* a, Value* b) { return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b); };
  Value *first = low, *last = high, *within = ir_.getTrue();
  for (const Interior::Range& range : interior_->ranges) {
    if (range.loop == schedule_.lane_loop(kernel_)) {
      const Dim vector(target_.lanes());
      first = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, low, scalar(floor_div(range.low + vector - Dim(1), vector) * vector));
      last = least(high, scalar(range.high));
    } else if (!(range.low == Dim(0) && range.high == kernel_.outer[&range - interior_->ranges.data()].extent)) {
      Value* place = scalar(Dim::symbol(range.loop));
      within = ir_.CreateAnd(within, ir_.CreateAnd(ir_.CreateICmpSGE(place, scalar(range.low)), ir_.CreateICmpSLT(place, scalar(range.high))));
    }
  }
  return {ir_.CreateSelect(within, least(first, high), high), last};
}

void KernelEmitter::over_parts(Value* low, Value* high) {
  const auto body = [&] { stages(); };
  const auto [first, last] = inside(low, high);
  const auto run_inside = [&](Value* from) {
    const auto border = std::exchange(needed_, needed_by(kernel_, interior_->stages));
    stages_ = &interior_->stages;
    const unsigned wide = wide_lanes();
    Value* done = over_whole_vectors(wide, from, last, body);
    if (wide > target_.lanes()) done = over_whole_vectors(target_.lanes(), done, last, body);
    stages_ = &kernel_.stages;
    needed_ = border;
    return done;
  };
  // Twice: in front of the inside, and behind it, where no whole vector of it is left.
  plain_loop(ir_.getInt64(0), ir_.getInt64(2), 1, {low, first}, [&](Value*, Carried range) {
    over_masked_vectors(range[0], range[1], false, body);
    Value* done = run_inside(range[1]);
    return Carried{done, high};
  });
  b_.set_lanes(target_.lanes());
}

void KernelEmitter::stages() {
  for (const Stage& s : *stages_) {
    if (s.kind == StageKind::reduce) reduce_stage(s);
    if (s.kind == StageKind::row) row_stage(s);
    if (s.kind == StageKind::map) map_stage(s);
  }
}

/// Computes all values before the first is stored: a store may go over what another value is made of.
void KernelEmitter::row_stage(const Stage& stage) {
  for (const Store& s : stage.stores)
    if (!kernel_.scatter && stage.stores.size() > 1) value(s.value);
  for (std::size_t i = 0; i < stage.stores.size(); ++i) {
    const Store& s = stage.stores[i];
    scatter_ = kernel_.scatter ? &s : nullptr;
    if (i + 1 < stage.stores.size() && alternate(s, stage.stores[i + 1])) store_pairs(s, stage.stores[++i]);
    else store(s);
  }
}

void KernelEmitter::map_stage(const Stage& stage) {
  auto body = [&] { row_stage(stage); };
  const std::size_t loops = kernel_.scatter ? kernel_.inner.size() : inner_loops_of(kernel_.inner, stage.stores[0]);
  if (!schedule_.lanes_inside || loops < kernel_.inner.size()) return for_inner(0, loops, body);
  for_inner(0, kernel_.inner.size() - 1, [&] { over_lanes(wide_lanes(&stage), ir_.getInt64(0), scalar(kernel_.inner.back().extent), body); });
}

}  // namespace tenon::llvm_backend
