#include "fusion/contraction.h"

#include <algorithm>

#include "fusion/cost.h"
#include "fusion/operand.h"
#include "fusion/tile.h"
#include "loops/loop_shaping.h"
#include "matrix/microkernel.h"

namespace tenon::codegen {

using P = ops::Primitive;

namespace {

bool is_plain_sum(const ops::Reducer& reducer) {
  if (reducer.accumulators.size() != 1 || reducer.combine.results.size() != 1 || reducer.finish.results.size() != 1) return false;
  const auto& combine = reducer.combine.instructions[reducer.combine.results[0]];
  const auto& finish = reducer.finish.instructions[reducer.finish.results[0]];
  return combine.op == P::add && finish.op == P::parameter;
}

/// A loop of the result, and which operand steps along it.
struct Role {
  Loop loop;
  Dim c;  // stride in the result
  bool in_a = false, in_b = false;
};

/// The loops of a product, with its operands as operations of the draft.
struct Nest {
  Draft draft;
  std::vector<Dim> result;  // the index of the result, over the loops
  std::vector<Role> outer;
  std::vector<Loop> summed;
  OpId a = kNoOp, b = kNoOp;
};

class NestBuilder {
 public:
  NestBuilder(const FusionContext& context, NodeId node) : context_(context), node_(node), body_(*context.bodies[node.value]) {}

  /// Loops that an operand's index divides are split, and then each part has a role.
  std::optional<Nest> build() {
    splits_.assign(body_.outer(), 1);
    auto nest = attempt();
    bool again = false;
    for (std::size_t i = 0; nest && i < body_.outer(); ++i) {
      if (nest->result[i].is_constant() || !body_.extents[i].is_constant()) continue;
      const auto divisor = divisor_of(nest->draft.operations(), nest->result[i].as_symbol());
      if (!divisor || *divisor <= 1 || body_.extents[i].constant() % *divisor != 0) continue;
      splits_[i] = *divisor;
      again = true;
    }
    return again ? attempt() : std::move(nest);
  }

 private:
  std::optional<Nest> attempt() {
    Nest nest{Draft(context_), {}, {}, {}, kNoOp, kNoOp};
    const auto strides = context_.graph.type(context_.graph.node(node_).results[0]).resolved_strides();
    std::vector<Dim> extents, c;
    for (std::size_t i = 0; i < body_.outer(); ++i) {
      const Dim split(splits_[i]);
      if (splits_[i] > 1) extents.push_back(floor_div(body_.extents[i], split)), c.push_back(strides[i] * split);
      extents.push_back(splits_[i] > 1 ? split : body_.extents[i]), c.push_back(strides[i]);
    }
    const std::size_t outer = extents.size();
    extents.insert(extents.end(), body_.extents.begin() + static_cast<std::ptrdiff_t>(body_.outer()), body_.extents.end());
    const auto loops = nest.draft.make_loops(extents, body_.reduced);
    for (std::size_t i = 0, at = 0; i < body_.outer(); ++i) {
      Dim index = splits_[i] > 1 ? loops[at++] * Dim(splits_[i]) : Dim(0);
      nest.result.push_back(index + loops[at++]);
    }
    std::vector<Dim> index = nest.result;
    index.insert(index.end(), loops.begin() + static_cast<std::ptrdiff_t>(outer), loops.end());
    try {
      nest.draft.add_reduction(node_, index);
    } catch (const NotFusable&) {
      return {};
    }
    if (!find_operands(nest)) return {};
    const auto in_a = loops_of(nest.draft.operations(), nest.a), in_b = loops_of(nest.draft.operations(), nest.b);
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (loops[i].is_constant()) continue;
      const Loop loop{loops[i].as_symbol(), extents[i]};
      if (i < outer) nest.outer.push_back({loop, c[i], in_a.contains(loop.variable), in_b.contains(loop.variable)});
      else nest.summed.push_back(loop);
    }
    return nest;
  }

  bool find_operands(Nest& nest) const {
    const DType dtype = context_.graph.type(context_.graph.node(node_).results[0]).dtype;
    const OperationList& operations = nest.draft.operations();
    for (const Operation& op : operations.all())
      if (op.kind == OperationKind::checked) return false;
    const Operation& product = operations[nest.draft.elements_of_first_reduction()[0]];
    if (product.kind != OperationKind::primitive || product.primitive != P::mul) return false;
    nest.a = product.args[0], nest.b = product.args[1];
    return operations[nest.a].dtype == dtype && operations[nest.b].dtype == dtype;
  }

  const FusionContext& context_;
  NodeId node_;
  const ops::LoopBody& body_;
  std::vector<std::int64_t> splits_;
};

std::vector<Loop> loops_of(std::span<const Role> roles) {
  std::vector<Loop> loops;
  for (const Role& r : roles) loops.push_back(r.loop);
  return loops;
}

Dim count_of(std::span<const Loop> loops) {
  Dim count(1);
  for (const Loop& l : loops) count = count * l.extent;
  return count;
}

/// The innermost loops among `loops` that one stride steps through.
std::size_t stepping_as_one(std::span<const Loop> loops, std::span<const Dim> strides) {
  std::size_t count = loops.empty() ? 0 : 1;
  while (count < loops.size()) {
    const std::size_t i = loops.size() - 1 - count;
    if (!(strides[i] == strides[i + 1] * loops[i + 1].extent)) break;
    ++count;
  }
  return count;
}

class ContractionBuilder {
 public:
  ContractionBuilder(const FusionContext& context, NodeId node, Nest nest, unsigned lanes)
      : context_(context), algebra_(context.algebra), nest_(std::move(nest)), lanes_(lanes) {
    result_.step.node = node;
    result_.step.c = context.graph.node(node).results[0];
    result_.step.dtype = context.graph.type(result_.step.c).dtype;
  }

  std::optional<Contraction> build() {
    if (!nest_.outer.empty() && nest_.outer.back().in_a && !nest_.outer.back().in_b) swap_operands();
    for (const Role& r : nest_.outer) (r.in_a == r.in_b ? batch_ : r.in_a ? rows_ : columns_).push_back(r);
    const auto in_a = operand(nest_.a), in_b = operand(nest_.b);
    leave_to_batch(rows_, in_a ? fitting(rows_, *in_a) : rows_.size());
    leave_to_batch(columns_, in_b ? fitting(columns_, *in_b) : filling(columns_));
    if (batch_.size() > kMaxBatchLoops) return {};
    ContractionStep& step = result_.step;
    step.m = count_of(loops_of(rows_)), step.n = count_of(loops_of(columns_));
    for (const Role& r : batch_) step.batch.push_back(r.loop.extent);
    const bool one_sum = in_a && in_b;
    step.steps = one_sum || nest_.summed.empty() ? count_of(nest_.summed) : nest_.summed[0].extent;
    step.step_depth = one_sum || nest_.summed.empty() ? Dim(1) : count_of(std::span(nest_.summed).subspan(1));
    place_loops();
    if (in_a) fill(step.a, *in_a, rows_, true);
    else step.a.pack = pack_rows();
    if (in_b) fill(step.b, *in_b, columns_, false);
    else step.b.pack = pack_columns();
    set_result_strides();
    return std::move(result_);
  }

 private:
  void swap_operands() {
    std::swap(nest_.a, nest_.b);
    for (Role& r : nest_.outer) std::swap(r.in_a, r.in_b);
  }

  /// The operand in place, when its summed loops step as one.
  std::optional<InPlace> operand(OpId id) const {
    std::vector<Loop> all = loops_of(nest_.outer);
    all.insert(all.end(), nest_.summed.begin(), nest_.summed.end());
    auto found = in_place(nest_.draft, id, all);
    if (!found) return {};
    const auto strides = std::span(found->strides).subspan(nest_.outer.size());
    if (!nest_.summed.empty() && stepping_as_one(nest_.summed, strides) != nest_.summed.size()) return {};
    return found;
  }

  Dim stride_of(const InPlace& place, const Loop& loop) const {
    for (std::size_t i = 0; i < nest_.outer.size(); ++i)
      if (nest_.outer[i].loop.variable == loop.variable) return place.strides[i];
    return Dim(0);
  }

  std::vector<Dim> strides_of(const InPlace& place, std::span<const Role> roles) const {
    std::vector<Dim> strides;
    for (const Role& r : roles) strides.push_back(stride_of(place, r.loop));
    return strides;
  }

  std::size_t fitting(std::span<const Role> roles, const InPlace& place) const { return stepping_as_one(loops_of(roles), strides_of(place, roles)); }

  /// Of columns that are packed: those contiguous in the result, and all where those alone would leave most of a tile empty.
  std::size_t filling(std::span<const Role> roles) const {
    std::vector<Dim> c;
    for (const Role& r : roles) c.push_back(r.c);
    const auto loops = loops_of(roles);
    const std::size_t contiguous = stepping_as_one(loops, c);
    const double columns = algebra_.estimate(count_of(std::span(loops).last(contiguous)));
    return fills_tiles(columns, tile_columns(lanes_, result_.step.dtype)) ? contiguous : roles.size();
  }

  void leave_to_batch(std::vector<Role>& roles, std::size_t keep) {
    const auto last = roles.end() - static_cast<std::ptrdiff_t>(keep);
    batch_.insert(batch_.end(), roles.begin(), last);
    roles.erase(roles.begin(), last);
  }

  void stand_at(std::span<const Role> roles, Dim flat) {
    for (std::size_t i = 0; i < roles.size(); ++i) {
      const auto inner = loops_of(roles.subspan(i + 1));
      const Dim size = count_of(inner);
      replacements_.emplace_back(roles[i].loop.variable, algebra_.floor_div(flat, size));
      flat = algebra_.mod(flat, size);
    }
  }

  Dim symbol(TileSymbol which, std::size_t loop = 0) const { return tile_symbol(context_.graph, which, loop); }

  /// Expresses the loops of the nest by the position of a tile and two loops within it.
  void place_loops() {
    result_.row = {algebra_.new_loop(symbol(TileSymbol::rows)), symbol(TileSymbol::rows)};
    result_.column = {algebra_.new_loop(symbol(TileSymbol::columns)), symbol(TileSymbol::columns)};
    for (std::size_t i = 0; i < batch_.size(); ++i) replacements_.emplace_back(batch_[i].loop.variable, symbol(TileSymbol::batch, i));
    stand_at(rows_, symbol(TileSymbol::row) + Dim::symbol(result_.row.variable));
    stand_at(columns_, symbol(TileSymbol::column) + Dim::symbol(result_.column.variable));
    for (Dim d : nest_.result) {
      for (const auto& [loop, by] : replacements_) d = algebra_.substitute(d, loop, by);
      result_.index.push_back(d);
    }
  }

  void fill(MatrixOperand& to, const InPlace& place, std::span<const Role> side, bool left) const {
    to.value = place.value, to.offset = place.offset;
    to.batch_strides = strides_of(place, batch_);
    const Dim along = side.empty() ? Dim(0) : stride_of(place, side.back().loop);
    const Dim summed = nest_.summed.empty() ? Dim(1) : place.strides.back();
    to.row_stride = left ? along : summed;
    to.column_stride = left ? summed : side.empty() ? Dim(1) : along;
  }

  /// The summed loops inside a part of the first, and the position in it.
  std::pair<std::vector<Loop>, Dim> part_of_sum() {
    std::vector<Loop> loops;
    Dim position(0);
    for (std::size_t i = 0; i < nest_.summed.size(); ++i) {
      const Dim extent = i == 0 ? symbol(TileSymbol::steps) : nest_.summed[i].extent;
      loops.push_back({algebra_.new_loop(extent), extent});
      position = position * nest_.summed[i].extent + Dim::symbol(loops.back().variable);
      replacements_.emplace_back(nest_.summed[i].variable, (i == 0 ? symbol(TileSymbol::step) : Dim(0)) + Dim::symbol(loops.back().variable));
    }
    return {std::move(loops), position};
  }

  /// Writes rows one after the other, each as long as the part of the sum.
  KernelStep pack_rows() {
    const auto before = replacements_;
    auto [loops, position] = part_of_sum();
    const Dim depth = nest_.summed.empty() ? Dim(1) : symbol(TileSymbol::steps) * result_.step.step_depth;
    KernelStep step = storing(nest_.draft, nest_.a, context_, replacements_, Dim::symbol(result_.row.variable) * depth + position);
    step.kernel.outer = {result_.row};
    step.kernel.inner = std::move(loops);
    if (!step.kernel.inner.empty()) step.kernel.stages[0].kind = StageKind::map;
    shape_loops(step.kernel, algebra_, lanes_);
    replacements_ = before;
    return step;
  }

  /// Writes a panel: a row of the tile's width for each step of the sum. Lanes run over columns; what does not depend on the first
  /// summed loop (the padding of a convolution) is computed outside of it.
  KernelStep pack_columns() {
    const auto before = replacements_;
    auto [loops, position] = part_of_sum();
    const Dim width(tile_columns(lanes_, result_.step.dtype));
    KernelStep step = storing(nest_.draft, nest_.b, context_, replacements_, position * width + Dim::symbol(result_.column.variable));
    step.kernel.outer = {result_.column};
    if (!loops.empty()) std::rotate(loops.begin(), loops.begin() + 1, loops.end());
    step.kernel.inner = std::move(loops);
    if (!step.kernel.inner.empty()) step.kernel.stages[0].kind = StageKind::map;
    replacements_ = before;
    return step;
  }

  void set_result_strides() {
    ContractionStep& step = result_.step;
    auto fits = [&](std::span<const Role> roles) {
      std::vector<Dim> c;
      for (const Role& r : roles) c.push_back(r.c);
      return stepping_as_one(loops_of(roles), c) == roles.size();
    };
    for (const Role& r : batch_) step.c_batch_strides.push_back(r.c);
    step.c_row_stride = rows_.empty() ? Dim(0) : rows_.back().c;
    step.c_in_place = fits(rows_) && fits(columns_) && (columns_.empty() || columns_.back().c == Dim(1));
  }

  const FusionContext& context_;
  IndexAlgebra& algebra_;
  Nest nest_;
  unsigned lanes_;
  std::vector<Role> batch_, rows_, columns_;
  std::vector<std::pair<SymbolId, Dim>> replacements_;
  Contraction result_;
};

}  // namespace

bool is_sum_of_products(const ir::Graph& graph, NodeId node, const ops::LoopBody& body) {
  if (!body.reducer || body.element.results.size() != 1 || !is_plain_sum(*body.reducer)) return false;
  const DType dtype = graph.type(graph.node(node).results[0]).dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return false;
  const auto& all = body.element.instructions;
  const auto& product = all[body.element.results[0]];
  if (product.op != P::mul) return false;
  for (int k = 0; k < 2; ++k) {
    const auto& load = all[product.args[k]];
    if (load.op != P::load || graph.type(graph.node(node).operands[load.payload]).dtype != dtype) return false;
    if (load.masked && (all[load.args[1]].op != P::constant || all[load.args[1]].payload != 0)) return false;
  }
  return true;
}

std::optional<Contraction> as_contraction(const FusionContext& context, NodeId node, unsigned lanes) {
  auto nest = NestBuilder(context, node).build();
  if (!nest) return {};
  return ContractionBuilder(context, node, std::move(*nest), lanes).build();
}

KernelStep on_tiles(KernelStep over_result, const Contraction& product, const FusionContext& context) {
  Kernel& kernel = over_result.kernel;
  auto place = [&](Dim& d) {
    for (std::size_t i = 0, loop = 0; i < product.index.size() && loop < kernel.outer.size(); ++i) {
      if (product.index[i].is_constant()) continue;
      d = context.algebra.substitute(d, kernel.outer[loop++].variable, product.index[i]);
    }
  };
  const auto tile = static_cast<std::uint64_t>(kernel.buffers.size());
  const Dim in_tile = Dim::symbol(product.row.variable) * Dim(tile_columns(context.lanes, product.step.dtype)) + Dim::symbol(product.column.variable);
  for (Operation& op : kernel.operations) {
    place(op.offset);
    if (op.kind != OperationKind::product) continue;
    op.kind = OperationKind::load, op.payload = tile, op.offset = in_tile;
  }
  for (Stage& stage : kernel.stages)
    for (Store& store : stage.stores) place(store.offset);
  kernel.buffers.push_back({product.step.dtype, Dim(0), false});
  over_result.buffers.push_back(kPanel);
  kernel.outer = {product.row, product.column};
  kernel.one_block = true;
  return over_result;
}

}  // namespace tenon::codegen
