#include "drafts/contraction.h"

#include <algorithm>

#include "drafts/nest.h"
#include "drafts/operand.h"
#include "drafts/windows.h"

namespace tenon::codegen {

using P = ops::Primitive;

namespace {

bool is_plain_sum(const ops::Reducer& reducer) {
  if (reducer.accumulators.size() != 1 || reducer.combine.results.size() != 1 || reducer.finish.results.size() != 1) return false;
  const auto& combine = reducer.combine.instructions[reducer.combine.results[0]];
  const auto& finish = reducer.finish.instructions[reducer.finish.results[0]];
  return combine.op == P::add && finish.op == P::parameter;
}

/// Sorts loops by their stride in the result, the longest first. False when they lie so already.
bool order_by_result(std::vector<Role>& outer, const IndexAlgebra& algebra) {
  const auto longer = [&](const Role& a, const Role& b) { return algebra.estimated_step(a.c) > algebra.estimated_step(b.c); };
  if (std::is_sorted(outer.begin(), outer.end(), longer)) return false;
  std::stable_sort(outer.begin(), outer.end(), longer);
  return true;
}

class ProductBuilder {
 public:
  ProductBuilder(const FusionContext& context, NodeId node, Nest nest) : context_(context), algebra_(context.algebra), machine_(context.machine), nest_(std::move(nest)) {
    product_.node = node;
    const ValueId result = context.graph.node(node).results[0];
    const Lying place = context.place_of(result);
    product_.result = place.value, product_.offset = place.offset;
    product_.dtype = context.graph.type(result).dtype;
  }

  /// With `copies` false, nothing where many rows of the left operand would have to be copied.
  std::optional<Product> build(bool copies) {
    const bool one_column = std::ranges::all_of(nest_.outer, [](const Role& r) { return r.in_a && !r.in_b; });
    if (one_column && !nest_.outer.empty()) {
      rows_ = nest_.outer;
      if (auto over_windows = by_windows_apart()) return over_windows;
      rows_.clear();
    }
    if (!nest_.outer.empty() && nest_.outer.back().in_a && !nest_.outer.back().in_b) swap_operands();
    for (const Role& r : nest_.outer) (r.in_a == r.in_b ? batch_ : r.in_a ? rows_ : columns_).push_back(r);
    auto in_a = operand(nest_.a);
    const auto in_b = operand(nest_.b);
    const bool by_dots = in_b && in_b->strides.back() == Dim(1) && !context_.is_constant(in_b->value) && algebra_.estimate(product_.row_count()) <= machine_.thresholds.rows_of_dots;
    const bool one_matrix = in_a && fitting(rows_, *in_a) == rows_.size();
    if (!one_matrix && !by_dots)
      if (auto over_windows = by_windows()) return over_windows;
    if (in_a && (!in_b || machine_.worth_leaving_unpacked(size())))
      if (auto over_places = by_runs_of_columns(*in_a)) return over_places;
    if (by_dots && !one_matrix) in_a.reset();
    if (!in_a && !by_dots && !copies) return {};
    if (!in_a && columns_.empty()) return {};  // rows copied to be read once
    leave_to_batch(rows_, in_a ? fitting(rows_, *in_a) : rows_.size());
    leave_to_batch(columns_, in_b ? fitting(columns_, *in_b) : filling(columns_));
    if (batch_.size() > kMostBatchLoops) return {};
    if (in_a) product_.a.matrix = matrix(*in_a, rows_, true);
    if (in_b) product_.b.matrix = matrix(*in_b, columns_, false);
    return take();
  }

 private:
  Product take() {
    product_.operations = nest_.draft.operations().all();
    product_.buffers = nest_.draft.buffers();
    product_.a.element = nest_.a, product_.b.element = nest_.b;
    product_.a.dtype = dtype_of(nest_.a, product_.a), product_.b.dtype = dtype_of(nest_.b, product_.b);
    product_.summed = std::move(nest_.summed);
    product_.index = std::move(nest_.result);
    return std::move(product_);
  }

  /// What lies in memory, or what an operand is computed as.
  DType dtype_of(OpId element, const ProductOperand& operand) const { return operations()[operand.windows ? operand.windows->load : element].dtype; }

  /// Of what is left of the loops of the result.
  ProductSize size() const {
    return {.rows = algebra_.estimate(product_.row_count()),
            .columns = algebra_.estimate(product_.column_count()),
            .depth = estimated_points(algebra_, nest_.summed),
            .is_repeated = !batch_.empty(),
            .is_dot = false,
            .writes_operand = false,
            .over_windows = false,
            .left = operations()[nest_.a].dtype,
            .right = operations()[nest_.b].dtype};
  }

  void swap_operands() {
    std::swap(nest_.a, nest_.b);
    for (Role& r : nest_.outer) std::swap(r.in_a, r.in_b);
  }

  std::span<const Operation> operations() const { return nest_.draft.operations().all(); }

  std::optional<InPlace> in_place(OpId id, std::span<const Loop> summed) const { return codegen::in_place(operations(), nest_.draft.buffers(), id, all_loops(summed)); }

  /// The operand in place, when its summed loops step as one.
  std::optional<InPlace> operand(OpId id) const {
    auto found = in_place(id, nest_.summed);
    if (!found) return {};
    const auto strides = std::span(found->strides).subspan(nest_.outer.size());
    if (!nest_.summed.empty() && stepping_as_one(nest_.summed, strides) != nest_.summed.size()) return {};
    return found;
  }

  /// The product with one column, where windows do not start an element apart: vectors run along the windows, and not from one to the next.
  std::optional<Product> by_windows_apart() {
    const auto windows = windows_of(operations(), nest_.a, nest_.summed, algebra_, machine_);
    if (!windows || is_contiguous_or_fixed(operations()[windows->load].offset, rows_.back().loop.variable)) return {};
    return by_windows();
  }

  /// The product with the left operand read in windows; the right one is a matrix at each tap, or computed when runs go over several loops.
  std::optional<Product> by_windows() {
    auto windows = windows_of(operations(), nest_.a, nest_.summed, algebra_, machine_);
    if (!windows) return {};
    const std::vector<Loop> summed = summed_loops(*windows);
    const auto b = in_place(nest_.b, summed);
    const std::size_t taps = windows->taps.size();
    const bool computes = windows->run.size() > 1;
    const DType dtype = operations()[windows->load].dtype;
    if (is_reduced_float(dtype) && computes) return {};  // what is computed is no pairs
    if (computes ? taps != 1 : !b || operations()[nest_.b].dtype != dtype || !step_evenly(*b, windows->taps)) return {};
    nest_.summed = summed;
    leave_to_batch(columns_, computes ? filling(columns_) : fitting(columns_, *b));
    if (batch_.size() > kMostBatchLoops || (columns_.empty() && !batch_.empty())) return {};  // what is multiplied together are columns
    product_.picture = transformed(dtype, *windows, loops_of(rows_), columns_);
    if (product_.picture) product_.picture->relaxed = context_.relaxed;
    else gather_padding(*windows);
    if (!computes) {
      product_.b.matrix = matrix(*b, columns_, false);
      product_.b.matrix->tap_stride = taps ? b->strides[nest_.outer.size() + taps - 1] : Dim(0);
    }
    product_.a.windows = std::move(windows);
    return take();
  }

  /// The product with columns of the left operand contiguous, as it lies, and the right one in runs of columns: the gradient of a weight.
  std::optional<Product> by_runs_of_columns(const InPlace& a) {
    if (rows_.empty() || columns_.empty() || fitting(rows_, a) != rows_.size() || !(stride_of(a, rows_.back().loop) == Dim(1))) return {};
    if (batch_.size() > kMostBatchLoops) return {};
    if (!machine_.reads_runs_of_columns(operations()[nest_.a].dtype) || !machine_.reads_runs_of_columns(operations()[nest_.b].dtype)) return {};
    auto windows = windows_of(operations(), nest_.b, loops_of(columns_), algebra_, machine_);
    if (!windows) return {};
    product_.picture = transformed(product_.dtype, *windows, nest_.summed, rows_);
    product_.a.matrix = matrix(a, rows_, true);
    product_.b.windows = std::move(windows);
    return take();
  }

  /// The picture that the windows slide over, where they are transformed: `places` are its own, `others` what a weight has beside channels and taps.
  std::optional<Picture> transformed(DType dtype, const Windows& windows, const std::vector<Loop>& places, std::span<const Role> others) const {
    const auto picture = picture_of(operations(), windows, places);
    const bool pays = picture && machine_.worth_transforming(dtype, estimated_points(algebra_, places), estimated_points(algebra_, loops_of(others)), algebra_.estimate(windows.run[0].extent));
    return pays ? picture : std::nullopt;
  }

  /// True when one stride of `b` steps through all taps.
  bool step_evenly(const InPlace& b, std::span<const Loop> taps) const {
    return taps.size() <= 1 || stepping_as_one(taps, std::span(b.strides).subspan(nest_.outer.size(), taps.size())) == taps.size();
  }

  /// Of small pictures, puts the same place of all pictures side by side: where it lies in the padding at a tap, whole blocks of rows do, and
  /// are left out.
  void gather_padding(const Windows& windows) {
    if (windows.mask == kNoOp) return;
    const auto masked_by = loops_of(operations(), windows.mask);
    auto is_masked = [&](const Role& r) { return masked_by.contains(r.loop.variable); };
    double places = 1;
    for (const Role& r : rows_)
      if (is_masked(r)) places *= algebra_.estimate(r.loop.extent);
    if (places <= machine_.thresholds.small_picture) std::stable_partition(rows_.begin(), rows_.end(), is_masked);
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

  /// Of columns that are computed: those contiguous in the result, and all where those alone would leave much of a matrix kernel unused.
  std::size_t filling(std::span<const Role> roles) const {
    std::vector<Dim> c;
    for (const Role& r : roles) c.push_back(r.c);
    const auto loops = loops_of(roles);
    const std::size_t contiguous = stepping_as_one(loops, c);
    const double columns = algebra_.estimate(count_of(std::span(loops).last(contiguous)));
    return machine_.fills_matrix_kernel(columns, product_.dtype) ? contiguous : roles.size();
  }

  void leave_to_batch(std::vector<Role>& roles, std::size_t keep) {
    const auto last = roles.end() - static_cast<std::ptrdiff_t>(keep);
    batch_.insert(batch_.end(), roles.begin(), last);
    roles.erase(roles.begin(), last);
  }

  Matrix matrix(const InPlace& place, std::span<const Role> side, bool left) const {
    Matrix made{place.value, place.offset, strides_of(place, batch_), {}, {}, {}};
    const Dim along = side.empty() ? Dim(0) : stride_of(place, side.back().loop);
    const Dim summed = nest_.summed.empty() ? Dim(1) : place.strides.back();
    made.row_stride = left ? along : summed;
    made.column_stride = left ? summed : side.empty() ? Dim(1) : along;
    return made;
  }

  const FusionContext& context_;
  IndexAlgebra& algebra_;
  const Machine& machine_;
  Nest nest_;
  Product product_;
  std::vector<Role>&batch_ = product_.batch, &rows_ = product_.rows, &columns_ = product_.columns;
};

}  // namespace

bool is_sum_of_products(const ir::Graph& graph, NodeId node, const ops::LoopBody& body) {
  if (!body.reducer || body.element.results.size() != 1 || !is_plain_sum(*body.reducer)) return false;
  const DType dtype = graph.type(graph.node(node).results[0]).dtype;
  if (compute_type(dtype) != DType::f32 && dtype != DType::f64) return false;
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

std::optional<Product> as_product(const FusionContext& context, NodeId node) {
  auto nest = nest_of(context, node);
  if (!nest) return {};
  Nest ordered = *nest;
  const bool packs_left = node.value < context.packs_left.size() && context.packs_left[node.value];
  if (order_by_result(ordered.outer, context.algebra))
    if (auto product = ProductBuilder(context, node, std::move(ordered)).build(packs_left)) return product;
  return ProductBuilder(context, node, std::move(*nest)).build(true);
}

ProductSize size_of_product(const IndexAlgebra& algebra, const Product& product) {
  const Dim rows = product.row_count(), columns = product.column_count();
  double all_rows = algebra.estimate(rows), all_columns = algebra.estimate(columns);
  for (const Role& role : product.batch)
    if (role.in_a != role.in_b) (role.in_a ? all_rows : all_columns) *= algebra.estimate(role.loop.extent);
  return {.rows = algebra.estimate(rows),
          .columns = algebra.estimate(columns),
          .depth = estimated_points(algebra, product.summed),
          .is_repeated = !product.batch.empty(),
          .is_dot = rows == Dim(1) && columns == Dim(1),
          .writes_operand = product.a.is_computed() || product.b.is_computed(),
          .over_windows = product.a.windows || product.b.windows,
          .left = product.a.dtype,
          .right = product.b.dtype,
          .all_rows = all_rows,
          .all_columns = all_columns};
}

}  // namespace tenon::codegen
