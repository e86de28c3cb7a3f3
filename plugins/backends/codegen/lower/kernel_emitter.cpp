#include "lower/kernel_emitter.h"

#include <algorithm>

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "core/base/error.h"
#include "lower/kernel_emitter_impl.h"

namespace tenon::codegen {

using llvm::Value;
using P = ops::Primitive;

namespace {

bool has_wide_elements(const Operation& op) {
  return size_of(op.dtype) == 8 && op.kind != OperationKind::index && op.kind != OperationKind::constant;
}

}  // namespace

void emit_kernel(llvm::Module& module, const Kernel& kernel, const Target& target, const std::string& name) {
  KernelEmitter(module, kernel, target).emit(name);
}

void KernelEmitter::declare(const std::string& name) {
  auto* pointer = ir_.getPtrTy();
  auto* type = llvm::FunctionType::get(ir_.getVoidTy(), {pointer, pointer, ir_.getInt64Ty(), ir_.getInt64Ty(), pointer}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, b_.module());
  isa_.declare(*function_);
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
    bool computed = false;  // no run at all
    op.offset.for_each_symbol([&](SymbolId s) { computed = computed || is_value(s); });
    return !computed && !lane_affine(op.offset, affine);
  });
}

/// Lanes of a loop of the kernel, or of one sweep over the inner loops. Several vectors at once hide latency where a point is cheap, and
/// read longer runs where lanes run over an outer loop; costly points fill the machine by themselves.
unsigned KernelEmitter::wide_lanes(const Stage* sweep) {
  if (kernel_.tiled) return target_.lanes();
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
  while (lanes > target_.lanes() && kernel_.one_block % lanes != 0) lanes /= 2;  // whole tiles have no tail
  return lanes;
}

bool KernelEmitter::streams() const {
  if (kernel_.tiled || kernel_.scatter) return false;
  return written_bytes(kernel_) >= target_.streaming_bytes;
}

void KernelEmitter::emit(const std::string& name) {
  declare(name);
  const bool outside = kernel_.has_lanes() && !kernel_.lanes_inside;
  for (const Loop& l : kernel_.outer) symbol_depth_[l.variable.value] = 1;
  row_depth_ = outside ? (kernel_.tiled ? 3 : 2) : 1;
  if (kernel_.tiled) symbol_depth_[kernel_.outer[kernel_.outer.size() - 2].variable.value] = 2;
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
  if (!kernel_.has_lanes() || kernel_.lanes_inside) {
    decode_unit(number);
    return stages();
  }
  const Loop& lanes = kernel_.outer.back();
  const std::int64_t block = block_size(kernel_);
  Value* extent = scalar(lanes.extent);
  Value* within = number;
  if (kernel_.one_block) {
    decode_unit(number);
    within = ir_.getInt64(0);
  } else if (kernel_.outer.size() > 1) {
    Value* blocks = scalar(floor_div(lanes.extent + Dim(block - 1), Dim(block)));
    within = ir_.CreateURem(number, blocks);
    number = ir_.CreateUDiv(number, blocks);
    if (!kernel_.tiled) decode_unit(number);
  }
  Value* low = ir_.CreateMul(within, ir_.getInt64(block));
  Value* high = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateAdd(low, ir_.getInt64(block)), extent);
  if (!kernel_.tiled) return over_lanes(wide_lanes(), low, high, [&] { stages(); });
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
  const std::size_t inside = kernel_.tiled ? 2 : kernel_.has_lanes() && !kernel_.lanes_inside ? 1 : 0;
  const std::size_t count = kernel_.outer.size() - inside;
  for (std::size_t i = count; i-- > 0;) {
    Value* index = number;
    if (i > 0) {
      Value* extent = scalar(kernel_.outer[i].extent);
      index = ir_.CreateURem(number, extent);
      number = ir_.CreateUDiv(number, extent);
    }
    here().symbols[kernel_.outer[i].variable.value] = index;
  }
}

KernelEmitter::Carried KernelEmitter::counted(Value* low, Value* high, std::int64_t step, bool whole_steps, Carried initial, const CarriedBody& body,
                                              const std::function<void(llvm::BasicBlock*)>& enter_body, const std::function<void()>& leave_body) {
  auto& context = ir_.getContext();
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(context, "head", function_);
  auto* inside = llvm::BasicBlock::Create(context, "body", function_);
  auto* after = llvm::BasicBlock::Create(context, "after", function_);
  ir_.CreateBr(head);
  ir_.SetInsertPoint(head);
  llvm::PHINode* position = ir_.CreatePHI(ir_.getInt64Ty(), 2);
  position->addIncoming(low, before);
  Carried values;
  for (Value* v : initial) {
    llvm::PHINode* phi = ir_.CreatePHI(v->getType(), 2);
    phi->addIncoming(v, before);
    values.push_back(phi);
  }
  Value* last = whole_steps ? ir_.CreateAdd(position, ir_.getInt64(static_cast<std::uint64_t>(step))) : nullptr;
  Value* more = whole_steps ? ir_.CreateICmpSLE(last, high) : ir_.CreateICmpSLT(position, high);
  ir_.CreateCondBr(more, inside, after);
  enter_body(inside);
  const Carried next = body(position, values);
  Value* advanced = ir_.CreateAdd(position, ir_.getInt64(static_cast<std::uint64_t>(step)));
  llvm::BasicBlock* latch = ir_.GetInsertBlock();
  ir_.CreateBr(head);
  position->addIncoming(advanced, latch);
  for (std::size_t i = 0; i < next.size(); ++i) llvm::cast<llvm::PHINode>(values[i])->addIncoming(next[i], latch);
  leave_body();
  enter(after);
  values.push_back(position);
  return values;
}

KernelEmitter::Carried KernelEmitter::loop(Value* low, Value* high, std::int64_t step, bool whole_steps, SymbolId variable, Carried initial,
                                           const CarriedBody& body) {
  auto with_variable = [&](Value* position, Carried values) {
    if (variable) here().symbols[variable.value] = position;
    return body(position, std::move(values));
  };
  auto open = [&](llvm::BasicBlock* block) {
    scopes_.emplace_back();
    enter(block);
  };
  return counted(low, high, step, whole_steps, std::move(initial), with_variable, open, [&] { scopes_.pop_back(); });
}

KernelEmitter::Carried KernelEmitter::plain_loop(Value* low, Value* high, std::int64_t step, Carried initial, const CarriedBody& body) {
  auto values = counted(low, high, step, false, std::move(initial), body, [&](llvm::BasicBlock* block) { ir_.SetInsertPoint(block); }, [] {});
  values.pop_back();
  return values;
}

/// Iterations of the loop over lanes that whole vectors leave, where that is known: every range of it starts at a multiple of a vector.
std::optional<std::int64_t> KernelEmitter::left_by_vectors(std::int64_t lanes) const {
  const Dim& extent = (kernel_.lanes_inside ? kernel_.inner : kernel_.outer).back().extent;
  const bool starts_whole = kernel_.lanes_inside || kernel_.one_block || block_size(kernel_) % lanes == 0;
  if (!extent.is_constant() || !starts_whole) return {};
  return extent.constant() % lanes;
}

bool KernelEmitter::fills_vectors(std::int64_t lanes) const {
  const Dim& extent = (kernel_.lanes_inside ? kernel_.inner : kernel_.outer).back().extent;
  return !extent.is_constant() || extent.constant() >= lanes;
}

Value* KernelEmitter::mask_of_tail(Value* position, Value* high) {
  const unsigned lanes = target_.lanes();
  Value* left = ir_.CreateTrunc(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateSub(high, position), ir_.getInt64(lanes)), ir_.getInt32Ty());
  return ir_.CreateICmpULT(lane_numbers(ir_.getInt32Ty()), b_.splat(left));
}

void KernelEmitter::over_lanes(unsigned wide, Value* low, Value* high, const std::function<void()>& body) {
  const unsigned narrow = target_.lanes();
  const SymbolId lane = kernel_.lane_loop();
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

void KernelEmitter::for_inner(std::size_t first, std::size_t last, const std::function<void()>& body) {
  if (first == last) return body();
  const Loop& l = kernel_.inner[first];
  loop(ir_.getInt64(0), scalar(l.extent), 1, false, l.variable, {}, [&](Value*, Carried) {
    for_inner(first + 1, last, body);
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
  for (const Store& s : stage.stores) {
    scatter_ = kernel_.scatter ? &s : nullptr;
    store(s);
  }
}

void KernelEmitter::map_stage(const Stage& stage) {
  auto body = [&] { row_stage(stage); };
  const std::size_t loops = inner_loops_of(kernel_.inner, stage.stores[0]);
  if (!kernel_.lanes_inside || loops < kernel_.inner.size()) return for_inner(0, loops, body);
  for_inner(0, kernel_.inner.size() - 1, [&] { over_lanes(wide_lanes(&stage), ir_.getInt64(0), scalar(kernel_.inner.back().extent), body); });
}

Lanes KernelEmitter::value(OpId id) {
  const Operation& op = kernel_.operations[id];
  if (op.kind == OperationKind::constant) return b_.constant(op.dtype, op.payload);
  const std::size_t home = depth_of(id);
  TENON_CHECK(home <= depth(), "an operation is used outside of its loop");
  if (auto found = scopes_[home].values.find(id); found != scopes_[home].values.end()) return found->second;
  for (OpId a : op.args)
    if (a != kNoOp) value(a);
  AtScope at(ir_, scopes_[home]);
  const Lanes result = compute(id);
  scopes_[home].values[id] = result;
  return result;
}

Lanes KernelEmitter::compute(OpId id) {
  const Operation& op = kernel_.operations[id];
  switch (op.kind) {
    case OperationKind::primitive: return primitive(op);
    case OperationKind::index: {
      if (varies(op.offset)) return {vector(op.offset), DType::i64, true};
      return {scalar(op.offset), DType::i64, false};
    }
    case OperationKind::load: return load(op);
    case OperationKind::checked: return checked(op);
    case OperationKind::old_value: return load({.kind = OperationKind::load, .dtype = op.dtype, .payload = scatter_->buffer, .offset = scatter_->offset});
    default: break;
  }
  TENON_CHECK(false, "a reduction is read before its stage");
}

Lanes KernelEmitter::primitive(const Operation& op) {
  const std::size_t count = arity(op.primitive);
  if (op.primitive >= P::eq && op.primitive <= P::ge)
    if (const Lanes known = compare_indices(op); known.value) return known;
  Lanes args[3];
  bool varying = false;
  for (std::size_t i = 0; i < count; ++i) varying |= varies(op.args[i]);
  for (std::size_t i = 0; i < count; ++i) {
    const bool condition = op.primitive == P::select && i == 0;
    args[i] = varying && !condition ? widened(op.args[i]) : value(op.args[i]);
  }
  return b_.primitive(op.primitive, op.dtype, {args, count});
}

Lanes KernelEmitter::compare_indices(const Operation& op) {
  auto index_of = [&](OpId id) -> std::optional<Dim> {
    const Operation& o = kernel_.operations[id];
    if (o.kind == OperationKind::index) return o.offset;
    if (o.kind == OperationKind::constant && o.dtype == DType::i64) return Dim(static_cast<std::int64_t>(o.payload));
    return {};
  };
  const auto x = index_of(op.args[0]), y = index_of(op.args[1]);
  if (!x || !y || !kernel_.has_lanes()) return {};
  return {compare_lanes(op.primitive, *x - *y), DType::b8, true};
}

/// Compares a difference of indices with 0: lane numbers in 32 bits instead of indices in 64. Null when the difference does not
/// step by one a lane.
Value* KernelEmitter::compare_lanes(P comparison, const Dim& difference) {
  Affine affine;
  if (!varies(difference) || !lane_affine(difference, affine) || !(affine.coefficient == Dim(1))) return nullptr;
  Value* rest = scalar(-difference);  // of lane 0: lane number against it
  Value* low = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, rest, ir_.getInt64(static_cast<std::uint64_t>(-1)));
  Value* clamped = ir_.CreateTrunc(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, low, ir_.getInt64(b_.lanes() + 1)), ir_.getInt32Ty());
  const Lanes args[] = {{lane_numbers(ir_.getInt32Ty()), DType::i32, true}, {b_.splat(clamped), DType::i32, true}};
  return b_.primitive(comparison, DType::b8, args).value;
}

Lanes KernelEmitter::widened(OpId id) {
  const Lanes v = value(id);
  if (v.varying) return v;
  if (llvm::isa<llvm::Constant>(v.value)) return b_.widen(v);
  Scope& home = scopes_[depth_of(id)];
  const auto key = std::make_pair(id, b_.lanes());
  auto found = home.widened.find(key);
  if (found != home.widened.end()) return {found->second, v.dtype, true};
  AtScope at(ir_, home);
  const Lanes wide = b_.widen(v);
  home.widened[key] = wide.value;
  return wide;
}

}  // namespace tenon::codegen
