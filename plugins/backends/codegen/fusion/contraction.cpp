#include "fusion/contraction.h"

#include <algorithm>

#include "fusion/nest.h"
#include "fusion/operand.h"
#include "fusion/tile.h"
#include "fusion/windows.h"

namespace tenon::codegen {

using P = ops::Primitive;

namespace {

bool is_plain_sum(const ops::Reducer& reducer) {
  if (reducer.accumulators.size() != 1 || reducer.combine.results.size() != 1 || reducer.finish.results.size() != 1) return false;
  const auto& combine = reducer.combine.instructions[reducer.combine.results[0]];
  const auto& finish = reducer.finish.instructions[reducer.finish.results[0]];
  return combine.op == P::add && finish.op == P::parameter;
}

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

/// Sorts loops by their stride in the result, the longest first. False when they lie so already, or when a stride is not known.
bool order_by_result(std::vector<Role>& outer) {
  for (const Role& r : outer)
    if (!r.c.is_constant()) return false;
  auto longer = [](const Role& a, const Role& b) { return a.c.constant() > b.c.constant(); };
  if (std::is_sorted(outer.begin(), outer.end(), longer)) return false;
  std::stable_sort(outer.begin(), outer.end(), longer);
  return true;
}

class ContractionBuilder {
 public:
  ContractionBuilder(const FusionContext& context, NodeId node, Nest nest)
      : context_(context), algebra_(context.algebra), machine_(context.machine), nest_(std::move(nest)) {
    result_.step.node = node;
    const ValueId result = context.graph.node(node).results[0];
    const Lying place = context.place_of(result);
    result_.step.c = place.value, result_.step.c_offset = place.offset;
    result_.step.dtype = context.graph.type(result).dtype;
  }

  /// With `copies` false, nothing where many rows of the left operand would have to be copied.
  std::optional<Contraction> build(bool copies) {
    if (!nest_.outer.empty() && nest_.outer.back().in_a && !nest_.outer.back().in_b) swap_operands();
    for (const Role& r : nest_.outer) (r.in_a == r.in_b ? batch_ : r.in_a ? rows_ : columns_).push_back(r);
    auto in_a = operand(nest_.a);
    const auto in_b = operand(nest_.b);
    const bool by_dots = in_b && in_b->strides.back() == Dim(1) && !context_.is_constant(in_b->value) && algebra_.estimate(count_of(loops_of(rows_))) <= machine_.thresholds.rows_of_dots;
    const bool one_matrix = in_a && fitting(rows_, *in_a) == rows_.size();
    if (!one_matrix && !by_dots)
      if (auto over_windows = by_windows()) return over_windows;
    if (by_dots && !one_matrix) in_a.reset();
    if (!in_a && !by_dots && !copies) return {};
    if (!in_a && columns_.empty()) return {};  // rows copied to be read once
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
    else pack_left();
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
    auto found = in_place(nest_.draft, id, all_loops(nest_.summed));
    if (!found) return {};
    const auto strides = std::span(found->strides).subspan(nest_.outer.size());
    if (!nest_.summed.empty() && stepping_as_one(nest_.summed, strides) != nest_.summed.size()) return {};
    return found;
  }

  /// The product with the left operand read in windows; the right one is a matrix at each tap, or packed when runs go over several loops.
  std::optional<Contraction> by_windows() {
    const auto windows = windows_of(nest_.draft, nest_.a, nest_.summed, algebra_, machine_);
    if (!windows) return {};
    const std::vector<Loop> summed = summed_loops(*windows);
    const auto b = in_place(nest_.draft, nest_.b, all_loops(summed));
    const std::size_t taps = windows->taps.size();
    const bool packs = windows->run.size() > 1;
    if (packs ? taps != 1 : !b || !step_evenly(*b, windows->taps)) return {};
    nest_.summed = summed;
    leave_to_batch(columns_, packs ? filling(columns_) : fitting(columns_, *b));
    if (batch_.size() > kMaxBatchLoops || columns_.empty()) return {};  // lanes run over columns
    ContractionStep& step = result_.step;
    const double columns = estimated_points(algebra_, loops_of(columns_)), channels = algebra_.estimate(windows->run[0].extent);
    if (auto picture = picture_of(nest_.draft.operations(), *windows, rows_);
        picture && machine_.worth_transforming(estimated_points(algebra_, loops_of(rows_)), columns, channels)) {
      if (context_.relaxed) picture->square_side = machine_.side_of_squares(channels * columns, algebra_.estimate(picture->height), algebra_.estimate(picture->width));
      step.picture = picture;
    } else {
      gather_padding(*windows);
    }
    step.m = count_of(loops_of(rows_)), step.n = count_of(loops_of(columns_));
    for (const Role& r : batch_) step.batch.push_back(r.loop.extent);
    step.steps = count_of(windows->taps), step.step_depth = count_of(windows->run);
    place_loops();
    step.a.value = nest_.draft.buffers()[nest_.draft.operations()[windows->load].payload];
    step.a.batch_strides.assign(batch_.size(), Dim(0));
    step.a.column_stride = Dim(1);
    step.a.table = table(*windows);
    if (packs) {
      step.b.pack = pack_columns();
    } else {
      fill(step.b, *b, columns_, false);
      step.b.step_stride = taps ? b->strides[nest_.outer.size() + taps - 1] : Dim(0);
    }
    set_result_strides();
    return std::move(result_);
  }

  /// True when one stride of `b` steps through all taps.
  bool step_evenly(const InPlace& b, std::span<const Loop> taps) const {
    return taps.size() <= 1 || stepping_as_one(taps, std::span(b.strides).subspan(nest_.outer.size(), taps.size())) == taps.size();
  }

  /// Of small pictures, puts the same place of all pictures side by side: where it lies in the padding at a tap, whole tiles do, and
  /// are left out.
  void gather_padding(const Windows& windows) {
    if (windows.mask == kNoOp) return;
    const auto masked_by = loops_of(nest_.draft.operations(), windows.mask);
    auto is_masked = [&](const Role& r) { return masked_by.contains(r.loop.variable); };
    double places = 1;
    for (const Role& r : rows_)
      if (is_masked(r)) places *= algebra_.estimate(r.loop.extent);
    if (places <= machine_.thresholds.small_picture) std::stable_partition(rows_.begin(), rows_.end(), is_masked);
  }

  /// Writes where runs start; lanes run over rows.
  KernelStep table(const Windows& windows) {
    const auto before = replacements_;
    std::vector<Loop> loops;
    Dim position(0);
    for (const Loop& tap : windows.taps) {
      loops.push_back({algebra_.new_loop(tap.extent), tap.extent});
      position = position * tap.extent + Dim::symbol(loops.back().variable);
      replacements_.emplace_back(tap.variable, Dim::symbol(loops.back().variable));
    }
    for (const Loop& run : windows.run) replacements_.emplace_back(run.variable, Dim(0));
    KernelStep step = locating(nest_.draft, windows.load, windows.mask, context_, replacements_, position * Dim(kFinishedRows) + Dim::symbol(result_.row.variable));
    step.kernel.outer = {result_.row};
    step.kernel.one_block = kFinishedRows;
    step.kernel.inner = std::move(loops);
    if (!step.kernel.inner.empty()) step.kernel.stages[0].kind = StageKind::map;
    replacements_ = before;
    return step;
  }

  std::vector<Loop> all_loops(std::span<const Loop> summed) const {
    std::vector<Loop> all = loops_of(nest_.outer);
    all.insert(all.end(), summed.begin(), summed.end());
    return all;
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
    return machine_.fills_panels(columns, result_.step.dtype) ? contiguous : roles.size();
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

  void pack_left() {
    MatrixOperand& a = result_.step.a;
    a.pack = pack_rows();
    const auto rows = rows_behind(nest_.a);
    if (!rows) return;
    fill(a, *rows, rows_, true);
    a.packs_rows_of_value = true;
  }

  /// What `root` reads as rows that lie one stride apart.
  std::optional<InPlace> rows_behind(OpId root) const {
    const auto here = operand(root);
    if (here && !rows_.empty() && fitting(rows_, *here) == rows_.size() && !(stride_of(*here, rows_.back().loop) == Dim(0)) && here->strides.back() == Dim(1)) return here;
    for (OpId a : nest_.draft.operations()[root].args)
      if (a != kNoOp)
        if (auto found = rows_behind(a)) return found;
    return {};
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
    machine_.shape_beside_product(step.kernel, algebra_);
    replacements_ = before;
    return step;
  }

  /// Writes a panel: a row of the tile's width for each step of the sum. Lanes run over columns; what does not depend on the first
  /// summed loop (the padding of a convolution) is computed outside of it.
  KernelStep pack_columns() {
    const auto before = replacements_;
    auto [loops, position] = part_of_sum();
    const Dim width(machine_.panel_columns(result_.step.dtype));
    KernelStep step = storing(nest_.draft, nest_.b, context_, replacements_, position * width + Dim::symbol(result_.column.variable));
    step.kernel.outer = {result_.column};
    step.kernel.one_block = width.constant();
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
  const Machine& machine_;
  Nest nest_;
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

std::optional<Contraction> as_contraction(const FusionContext& context, NodeId node) {
  auto nest = nest_of(context, node);
  if (!nest) return {};
  Nest ordered = *nest;
  const bool packs_left = node.value < context.packs_left.size() && context.packs_left[node.value];
  if (order_by_result(ordered.outer))
    if (auto product = ContractionBuilder(context, node, std::move(ordered)).build(packs_left)) return product;
  return ContractionBuilder(context, node, std::move(*nest)).build(true);
}

ProductSize size_of_product(const IndexAlgebra& algebra, const ContractionStep& product) {
  return {.rows = algebra.estimate(product.m),
          .columns = algebra.estimate(product.n),
          .depth = algebra.estimate(product.steps) * algebra.estimate(product.step_depth),
          .is_repeated = !product.batch.empty(),
          .is_dot = product.m == Dim(1) && product.n == Dim(1),
          .writes_operand = product.a.pack || product.b.pack};
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
  // Lanes over the one column that there is would all store to one place.
  std::vector<Loop> loops;
  Dim in_tile(0);
  const Dim width(context.machine.panel_columns(product.step.dtype));
  if (!(product.step.m == Dim(1))) loops.push_back(product.row), in_tile = Dim::symbol(product.row.variable) * width;
  if (!(product.step.n == Dim(1))) loops.push_back(product.column), in_tile = in_tile + Dim::symbol(product.column.variable);
  for (Operation& op : kernel.operations) {
    place(op.offset);
    if (op.kind != OperationKind::product) continue;
    op.kind = OperationKind::load, op.payload = tile, op.offset = in_tile;
  }
  for (Stage& stage : kernel.stages)
    for (Store& store : stage.stores) place(store.offset);
  kernel.buffers.push_back({product.step.dtype, Dim(0), false});
  over_result.buffers.push_back(kPanel);
  kernel.one_block = product.step.n == Dim(1) ? kFinishedRows : width.constant();
  kernel.outer = std::move(loops);
  return over_result;
}

}  // namespace tenon::codegen
