#include "drafts/draft.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "drafts/value_range.h"

namespace tenon::codegen {

using ops::Instruction;
using P = ops::Primitive;

namespace {

std::size_t hash_of(NodeId node, std::span<const Dim> index, OpId mask) {
  std::size_t h = node.value * 0x9e3779b97f4a7c15ull + mask;
  for (const Dim& d : index) h = h * 31 + d.hash();
  return h;
}

}  // namespace

/// One run of a program: its operands, where its loops stand, and the registers so far.
struct Draft::Frame {
  const ops::ScalarProgram& program;
  std::span<const ValueId> operands;
  std::span<const Dim> loops;
  OpId mask;
  std::vector<Register> registers;
};

std::vector<Dim> Draft::make_loops(std::span<const Dim> extents, std::size_t inner) {
  std::vector<Dim> index;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == Dim(1)) {
      index.push_back(Dim(0));
      continue;
    }
    const SymbolId variable = context_->algebra.new_loop(extents[i]);
    (i + inner < extents.size() ? outer_ : inner_).push_back({variable, extents[i]});
    index.push_back(Dim::symbol(variable));
  }
  return index;
}

const Draft::Member* Draft::member(ValueId value) const {
  for (const Member& m : members_)
    if (m.value == value) return &m;
  return nullptr;
}

std::uint32_t Draft::buffer_of(ValueId value) {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i] == value) return static_cast<std::uint32_t>(i);
  buffers_.push_back(value);
  return static_cast<std::uint32_t>(buffers_.size() - 1);
}

OpId Draft::rounded(OpId op, DType storage) {
  if (!is_reduced_float(storage)) return op;
  return operations_.primitive(P::convert, storage, op);
}

void Draft::add_map(NodeId node, std::span<const Dim> index, StageKind kind) {
  const ir::Node& n = context_->graph.node(node);
  const auto results = instantiate(context_->bodies[node.value]->element, n.operands, index, kNoOp);
  for (std::size_t i = 0; i < n.results.size(); ++i) {
    const OpId op = rounded(results[i], context_->graph.type(n.results[i]).dtype);
    members_.push_back({n.results[i], {index.begin(), index.end()}, op, kind, 0});
  }
  nodes_.push_back(node);
}

void Draft::add_reduction(NodeId node, std::span<const Dim> index) {
  const ir::Node& n = context_->graph.node(node);
  const ops::LoopBody& body = *context_->bodies[node.value];
  const auto elements = instantiate(body.element, n.operands, index, kNoOp);
  const std::uint32_t id = static_cast<std::uint32_t>(reductions_.size());
  reductions_.push_back({*body.reducer, elements});
  const std::vector<Dim> own(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(body.outer()));
  for (std::size_t i = 0; i < n.results.size(); ++i) {
    const DType dtype = context_->graph.type(n.results[i]).dtype;
    const OpId op = rounded(operations_.reduced(id, static_cast<std::uint32_t>(i), compute_type(dtype)), dtype);
    members_.push_back({n.results[i], own, op, StageKind::reduce, id});
  }
  nodes_.push_back(node);
}

void Draft::add_product(NodeId node, std::span<const Dim> index) {
  const ValueId value = context_->graph.node(node).results[0];
  const DType dtype = context_->graph.type(value).dtype;
  members_.push_back({value, {index.begin(), index.end()}, rounded(operations_.product(compute_type(dtype)), dtype), StageKind::row, 0});
  nodes_.push_back(node);
}

void Draft::add_copy(ValueId from, ValueId to, std::span<const Dim> index) {
  members_.push_back({to, {index.begin(), index.end()}, element(from, index), StageKind::row, 0});
}

void Draft::add_part_write(const PartWrite& write, NodeId node) {
  const auto index = make_loops(context_->graph.type(write.source).shape, 0);
  std::vector<Dim> position;
  std::size_t of_source = 0;
  for (const ops::ShownDim& dim : write.part) position.push_back(dim.kept ? dim.start + index[of_source++] * Dim(dim.step) : dim.start);
  members_.push_back({context_->graph.node(node).results[0], std::move(position), element(write.source, index), StageKind::row, 0});
  nodes_.push_back(node);
}

/// Where a scatter writes along a dimension. What the op says of its own loops is right for its types; what an operand gives, also one that is
/// computed here, is checked.
Dim Draft::place_in(const Register& reg, const Dim& size, std::size_t dim) {
  if (reg.dim) return *reg.dim;
  const bool inside = always_inside(operations_, context_->algebra, reg.op, size);
  const Operation& op = operations_[reg.op];
  if (inside && op.kind == OperationKind::constant && op.dtype == DType::i64) return Dim(static_cast<std::int64_t>(op.payload));
  if (inside && op.kind == OperationKind::index) return op.offset;
  return Dim::symbol(value_symbol(inside ? reg.op : operations_.checked(reg.op, size, dim, kNoOp)));
}

/// The loop that a place along a dimension hangs on, where it alone decides it and each of its iterations has another place.
std::optional<SymbolId> Draft::only_loop_of(const Dim& place) const {
  for (const Loop& l : outer_) {
    const auto along = split_affine(place, l.variable);
    if (!along || !along->coefficient.is_constant() || along->coefficient == Dim(0)) continue;
    bool alone = true;
    along->rest.for_each_symbol([&](SymbolId s) { alone = alone && is_graph_symbol(s); });
    if (alone) return l.variable;
  }
  return {};
}

void Draft::add_scatter(const ops::ScatterBody& body, NodeId node) {
  const ir::Node& n = context_->graph.node(node);
  const ir::Type& type = context_->graph.type(n.results[0]);
  const auto index = make_loops(body.extents, 0);
  Frame target{body.target, n.operands, index, kNoOp, {}};
  for (const Instruction& i : body.target.instructions) target.registers.push_back(run(target, i));
  const auto& results = body.target.results;
  Dim offset(0);
  const auto strides = ir::row_major_strides(type.shape);
  for (std::size_t d = 0; d + 1 < results.size(); ++d) {
    const Dim place = place_in(target.registers[results[d]], type.shape[d], d);
    if (const auto loop = only_loop_of(place)) scatter_apart_.push_back(*loop);
    offset = offset + place * strides[d];
  }
  const OpId value = op_of(target.registers[results.back()]);
  std::vector<Register> parameters{{{}, operations_.old_value(compute_type(type.dtype))}, {{}, value}};
  Frame frame{body.combine, {}, {}, kNoOp, {}};
  for (const Instruction& i : body.combine.instructions)
    frame.registers.push_back(i.op == P::parameter ? parameters[i.payload] : run(frame, i));
  scatter_store_ = Store{buffer_of(n.results[0]), offset, op_of(frame.registers[body.combine.results[0]])};
  nodes_.push_back(node);
}

OpId Draft::op_of(Register& reg) {
  if (reg.op == kNoOp) reg.op = operations_.index(*reg.dim);
  return reg.op;
}

OpId Draft::conjunction(OpId a, OpId b) {
  if (a == kNoOp) return b;
  if (b == kNoOp || a == b) return a;
  return operations_.primitive(P::logical_and, DType::b8, a, b);
}

std::optional<OpId> Draft::inside(ValueId value, std::span<const Dim> index) {
  const Member* m = member(value);
  if (!m) return {};
  if (!std::equal(index.begin(), index.end(), m->index.begin(), m->index.end()))
    throw NotFusable("it reads " + context_->graph.value(value).name + " at another point");
  return m->op;
}

OpId Draft::memory_load(ValueId value, std::span<const Dim> index, OpId mask, OpId otherwise) {
  const ir::Type& type = context_->graph.type(value);
  const auto strides = type.resolved_strides();
  auto [memory, offset, joined] = context_->place_of(value);
  const bool own_part = joined && std::any_of(members_.begin(), members_.end(), [&](const Member& m) { return context_->place_of(m.value).value == memory; });
  if (own_part) throw NotFusable("it computes a part of " + context_->graph.value(value).name);
  for (std::size_t i = 0; i < index.size(); ++i) offset = offset + index[i] * strides[i];
  return operations_.load(buffer_of(memory), type.dtype, context_->algebra.simplify(offset), mask, otherwise);
}

OpId Draft::element(ValueId value, std::span<const Dim> index, OpId mask) {
  if (auto own = inside(value, index)) return *own;
  const ir::Value& v = context_->graph.value(value);
  const bool expands = v.kind == ir::ValueKind::result && !context_->in_memory[value.value] && context_->bodies[v.node.value] &&
                       !context_->bodies[v.node.value]->reducer;
  if (!expands) {
    const OpId otherwise = mask == kNoOp ? kNoOp : operations_.constant(compute_type(context_->graph.type(value).dtype), 0);
    return memory_load(value, index, mask, otherwise);
  }
  const std::size_t h = hash_of(v.node, index, mask);
  auto [first, last] = expansions_by_hash_.equal_range(h);
  for (auto it = first; it != last; ++it) {
    const Expansion& e = expansions_[it->second];
    if (e.node == v.node && e.mask == mask && std::equal(index.begin(), index.end(), e.index.begin(), e.index.end()))
      return e.results[v.index];
  }
  const ir::Node& node = context_->graph.node(v.node);
  auto results = instantiate(context_->bodies[v.node.value]->element, node.operands, index, mask);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = rounded(results[i], context_->graph.type(node.results[i]).dtype);
  expansions_by_hash_.emplace(h, static_cast<std::uint32_t>(expansions_.size()));
  expansions_.push_back({v.node, {index.begin(), index.end()}, mask, results});
  return results[v.index];
}

std::vector<OpId> Draft::instantiate(const ops::ScalarProgram& program, std::span<const ValueId> operands, std::span<const Dim> loops,
                                     OpId mask) {
  Frame frame{program, operands, loops, mask, {}};
  frame.registers.reserve(program.instructions.size());
  for (const Instruction& i : program.instructions) frame.registers.push_back(run(frame, i));
  std::vector<OpId> results;
  for (auto r : program.results) results.push_back(op_of(frame.registers[r]));
  return results;
}

Draft::Register Draft::run(Frame& frame, const Instruction& i) {
  switch (i.op) {
    case P::constant:
      if (i.dtype == DType::i64) return {Dim(static_cast<std::int64_t>(i.payload)), kNoOp};
      return {{}, operations_.constant(i.dtype, i.payload)};
    case P::extent: return {frame.program.dims[i.payload], kNoOp};
    case P::loop_index: return {frame.loops[i.payload], kNoOp};
    case P::parameter: throw NotFusable("its body has parameters");
    case P::load: return load(frame, i);
    default: return arithmetic(frame, i);
  }
}

Draft::Register Draft::arithmetic(Frame& frame, const Instruction& i) {
  const std::size_t count = arity(i.op);
  auto argument = [&](std::size_t k) -> Register& { return frame.registers[i.args[k]]; };
  if (i.op == P::select) {
    const OpId condition = op_of(argument(0));
    if (operations_.is_true(condition)) return argument(1);
    if (operations_.is_false(condition)) return argument(2);
  }
  if (i.op == P::convert && i.dtype == DType::i64 && argument(0).dim) return argument(0);
  const bool all_indices = count > 0 && argument(0).dim && (count < 2 || argument(1).dim) && count < 3;
  if (all_indices)
    if (auto folded = on_indices(i, *argument(0).dim, count > 1 ? *argument(1).dim : Dim(0))) return *folded;
  OpId args[3] = {kNoOp, kNoOp, kNoOp};
  for (std::size_t k = 0; k < count; ++k) args[k] = op_of(argument(k));
  if (i.op == P::lt && operations_.is_false(args[1]) && never_negative(operations_, context_->algebra, args[0])) return {{}, operations_.truth(false)};  // an index that does not wrap around
  if (frame.mask != kNoOp && context_->keeps_flags) operations_.quieten(i.op, frame.mask, args);
  return {{}, operations_.primitive(i.op, i.dtype, args[0], args[1], args[2])};
}

/// Arithmetic on index expressions stays symbolic; comparisons are decided where the ranges allow.
std::optional<Draft::Register> Draft::on_indices(const Instruction& i, const Dim& a, const Dim& b) {
  const IndexAlgebra& algebra = context_->algebra;
  auto known = [&](bool yes, bool no) -> std::optional<Register> {
    if (!yes && !no) return {};
    return Register{{}, operations_.truth(yes)};
  };
  auto of_dim = [](Dim d) { return Register{std::move(d), kNoOp}; };
  const bool may_divide = algebra.always_less_equal(Dim(1), b);
  const bool both_positive = may_divide && algebra.always_less_equal(Dim(0), a);
  switch (i.op) {
    case P::add: return of_dim(a + b);
    case P::sub: return of_dim(a - b);
    case P::mul: return of_dim(a * b);
    case P::neg: return of_dim(-a);
    case P::minimum:
      if (algebra.always_less_equal(a, b)) return of_dim(a);
      return of_dim(algebra.always_less_equal(b, a) ? b : min(a, b));
    case P::maximum:
      if (algebra.always_less_equal(a, b)) return of_dim(b);
      return of_dim(algebra.always_less_equal(b, a) ? a : max(a, b));
    case P::floor_div: return may_divide ? std::optional(of_dim(algebra.floor_div(a, b))) : std::nullopt;
    case P::remainder: return may_divide ? std::optional(of_dim(algebra.mod(a, b))) : std::nullopt;
    case P::trunc_div: return both_positive ? std::optional(of_dim(algebra.floor_div(a, b))) : std::nullopt;
    case P::fmod: return both_positive ? std::optional(of_dim(algebra.mod(a, b))) : std::nullopt;
    case P::lt: return known(algebra.always_less(a, b), algebra.always_less_equal(b, a));
    case P::le: return known(algebra.always_less_equal(a, b), algebra.always_less(b, a));
    case P::gt: return known(algebra.always_less(b, a), algebra.always_less_equal(a, b));
    case P::ge: return known(algebra.always_less_equal(b, a), algebra.always_less(a, b));
    case P::eq: return known(a == b, algebra.always_less(a, b) || algebra.always_less(b, a));
    case P::ne: return known(algebra.always_less(a, b) || algebra.always_less(b, a), a == b);
    default: return {};
  }
}

/// Whether there is an element to read where a check has given 0 for an index out of range; no operation where there always is one.
OpId Draft::is_not_empty(const Dim& size) {
  if (context_->algebra.always_less(Dim(0), size)) return kNoOp;
  if (size == Dim(0)) return operations_.truth(false);
  return operations_.primitive(P::lt, DType::b8, operations_.constant(DType::i64, 0), operations_.index(size));
}

Draft::Register Draft::load(Frame& frame, const Instruction& i) {
  const ValueId operand = frame.operands[i.payload];
  OpId own_mask = kNoOp, otherwise = kNoOp;
  if (i.masked) {
    own_mask = op_of(frame.registers[i.args[0]]);
    otherwise = op_of(frame.registers[i.args[1]]);
    if (operations_.is_true(own_mask)) own_mask = kNoOp;
    if (own_mask != kNoOp && operations_.is_false(own_mask)) return {{}, otherwise};
  }
  const OpId mask = conjunction(frame.mask, own_mask);
  const ir::Type& type = context_->graph.type(operand);
  std::vector<Dim> index;
  std::vector<OpId> checks;
  OpId has_elements = mask;
  for (std::uint32_t k = 0; k < i.index_count; ++k) {
    Register& r = frame.registers[frame.program.indices[i.first_index + k]];
    if (r.dim) {
      index.push_back(context_->algebra.simplify(*r.dim));
      continue;
    }
    const bool inside = always_inside(operations_, context_->algebra, r.op, type.shape[k]);
    if (!inside) {
      checks.push_back(operations_.checked(r.op, type.shape[k], k, mask));
      has_elements = conjunction(has_elements, is_not_empty(type.shape[k]));
    }
    index.push_back(Dim::symbol(value_symbol(inside ? r.op : checks.back())));
  }
  OpId value = element(operand, index, has_elements);
  for (OpId check : checks) value = operations_.needing(check, value);
  if (own_mask == kNoOp) return {{}, value};
  return {{}, operations_.primitive(P::select, i.dtype, own_mask, value, otherwise)};
}

std::vector<OpId> Draft::results() const {
  std::vector<OpId> found;
  for (const Member& m : members_) found.push_back(m.op);
  for (const Reduction& r : reductions_) found.insert(found.end(), r.elements.begin(), r.elements.end());
  if (!scatter_store_) return found;
  found.push_back(scatter_store_->value);
  scatter_store_->offset.for_each_symbol([&](SymbolId s) {
    if (is_value(s)) found.push_back(s.value - kFirstValue);
  });
  return found;
}

std::size_t Draft::chained_reductions() const {
  std::vector<std::size_t> before(operations_.size(), 0), reductions(reductions_.size(), 0);  // reductions that each needs, in the longest chain
  std::size_t most = 0, finished = 0;
  const auto finish = [&](std::uint32_t reduction) {
    for (; finished <= reduction; ++finished) {
      for (OpId e : reductions_[finished].elements) reductions[finished] = std::max(reductions[finished], before[e] + 1);
      most = std::max(most, reductions[finished]);
    }
  };
  for (OpId id = 0; id < operations_.size(); ++id) {
    const Operation& op = operations_[id];
    for (OpId need : needs_of(op)) before[id] = std::max(before[id], before[need]);
    if (op.kind != OperationKind::reduced) continue;
    const auto reduction = static_cast<std::uint32_t>(op.payload >> 16);
    finish(reduction);
    before[id] = reductions[reduction];
  }
  if (!reductions_.empty()) finish(static_cast<std::uint32_t>(reductions_.size() - 1));
  return most;
}

namespace {

/// Reductions that need no other one run in the first pass together.
void add_to_stage(Kernel& kernel, std::uint32_t reduction, const std::vector<bool>& depends) {
  bool dependent = false;
  for (OpId e : kernel.reductions[reduction].elements) dependent = dependent || depends[e];
  if (dependent || kernel.stages.empty()) kernel.stages.push_back({StageKind::reduce, {}, {}});
  Stage& stage = dependent ? kernel.stages.back() : kernel.stages.front();
  if (std::find(stage.reductions.begin(), stage.reductions.end(), reduction) == stage.reductions.end()) stage.reductions.push_back(reduction);
}

}  // namespace

namespace {

/// A complex value is stored as its parts, side by side.
std::vector<Store> stores_by_part(OperationList& operations, Store store) {
  if (!is_complex(operations[store.value].dtype)) return {store};
  const Dim first = store.offset * Dim(2);
  return {{store.buffer, first, operations.part(store.value, false)}, {store.buffer, first + Dim(1), operations.part(store.value, true)}};
}

/// What only held parts together is needed by nothing now.
std::vector<Operation> without_complex(std::vector<Operation> operations) {
  for (Operation& op : operations)
    if (is_complex(op.dtype)) op = {.kind = OperationKind::constant, .dtype = real_type(op.dtype)};
  return operations;
}

}  // namespace

Kernel Draft::finish(const std::vector<bool>& stored) {
  for (const Member& m : members_)
    if (stored[m.value.value]) buffer_of(context_->place_of(m.value).value);
  Kernel kernel;
  kernel.outer = outer_;
  kernel.inner = inner_;
  kernel.reductions = reductions_;
  const ir::Graph& graph = context_->graph;
  for (ValueId v : buffers_) {
    const ir::Type& type = graph.type(v);
    kernel.buffers.push_back({real_type(type.dtype), type.element_count() * Dim(static_cast<std::int64_t>(size_of(type.dtype))), false});
  }
  auto buffer_number = [&](ValueId v) {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      if (buffers_[i] == v) return static_cast<std::uint32_t>(i);
    TENON_CHECK(false, "a stored value has no buffer");
  };
  auto store_of = [&](const Member& m) {
    const ir::Type& type = graph.type(m.value);
    const auto strides = type.resolved_strides();
    const Lying place = context_->place_of(m.value);
    Store store{buffer_number(place.value), place.offset, m.op};
    for (std::size_t i = 0; i < m.index.size(); ++i) store.offset = store.offset + m.index[i] * strides[i];
    store.offset = context_->algebra.simplify(store.offset);
    kernel.buffers[store.buffer].written = true;
    return stores_by_part(operations_, store);
  };
  if (scatter_store_) {
    kernel.stages.push_back({StageKind::row, {}, stores_by_part(operations_, *scatter_store_)});
    kernel.operations = without_complex(operations_.all());
    kernel.scatter = true;
    kernel.apart = scatter_apart_;
    kernel.buffers[scatter_store_->buffer].written = true;
    return kernel;
  }
  const auto depends = reduction_dependents(operations_.all());
  std::vector<bool> placed(kernel.reductions.size(), false);
  Stage rows{StageKind::row, {}, {}};
  std::map<std::size_t, Stage> maps;  // by the number of inner loops
  for (const Member& m : members_) {
    const bool store = stored[m.value.value];
    if (m.kind == StageKind::reduce) {
      if (!placed[m.reduction]) add_to_stage(kernel, m.reduction, depends);
      placed[m.reduction] = true;
    }
    if (!store) continue;
    const std::vector<Store> stores = store_of(m);
    Stage& stage = m.kind == StageKind::map ? maps.try_emplace(inner_loops_of(inner_, stores.front()), Stage{StageKind::map, {}, {}}).first->second : rows;
    stage.stores.insert(stage.stores.end(), stores.begin(), stores.end());
  }
  kernel.operations = without_complex(operations_.all());
  if (!rows.stores.empty()) kernel.stages.push_back(std::move(rows));
  for (auto& [loops, stage] : maps) kernel.stages.push_back(std::move(stage));
  return kernel;
}

}  // namespace tenon::codegen
