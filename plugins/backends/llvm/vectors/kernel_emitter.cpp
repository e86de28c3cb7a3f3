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

}  // namespace

void emit_kernel(llvm::Module& module, const Kernel& kernel, const Target& target, const std::string& name) {
  const X86Isa isa(target);
  KernelEmitter(module, kernel, target, isa).emit(name);
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
  return std::any_of(kernel_.operations.begin(), kernel_.operations.end(), [&](const Operation& op) {
    if (op.kind != OperationKind::load || !varies(op.offset)) return false;
    Affine affine;
    return !is_computed(op.offset) && !lane_affine(op.offset, affine);  // what is computed is no run at all
  });
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
    for (const Stage& s : kernel_.stages) add_work(s, seen, work, wide_elements);
  } else {
    work = work_per_point(kernel_);
    wide_elements = std::any_of(kernel_.operations.begin(), kernel_.operations.end(), has_wide_elements);
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
  const unsigned narrow = target_.lanes();
  const SymbolId lane = schedule_.lane_loop(kernel_);
  Value* done = low;
  if (fills_vectors(wide)) {
    b_.set_lanes(wide);
    const Carried end = loop(low, high, wide, true, lane, {}, [&](Value*, Carried) {
      body();
      return Carried{};
    });
    done = end.back();
  }
  b_.set_lanes(narrow);
  if (left_by_vectors(wide) == 0) return;
  const bool whole = left_by_vectors(narrow) == 0;
  loop(done, high, narrow, whole, lane, {}, [&](Value* position, Carried) {
    if (!whole) tail_mask_ = mask_of_tail(position, high);
    body();
    tail_mask_ = nullptr;
    return Carried{};
  });
}

void KernelEmitter::stages() {
  for (const Stage& s : kernel_.stages) {
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
