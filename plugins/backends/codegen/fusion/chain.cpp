#include "fusion/chain.h"

#include <algorithm>
#include <limits>

namespace tenon::codegen {
namespace {

/// Positions in a dense array over the loops: one for each stride, when the strides are those of its dimensions in some order.
std::optional<std::vector<std::size_t>> dense_order(std::span<const Role> loops, std::span<const Dim> strides, Dim innermost) {
  std::vector<std::size_t> order, left;
  for (std::size_t i = 0; i < loops.size(); ++i) left.push_back(i);
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](std::size_t i) { return strides[i] == innermost; });
    if (next == left.end()) return {};
    innermost = innermost * loops[*next].loop.extent;
    order.insert(order.begin(), *next);
    left.erase(next);
  }
  return order;
}

class ChainBuilder {
 public:
  ChainBuilder(const FusionContext& context, const Product& first, KernelStep between, const Product& second)
      : algebra_(context.algebra), chain_{first, std::move(between), {second, {}, {}, {}}, {}, {}, {}, {}, {}} {}

  std::optional<ChainStep> build() {
    if (!products_agree() || !find_buffers() || !reads_rows_where_it_writes()) return {};
    chain_.softmax = softmax_of(chain_.between.kernel);
    if (chain_.softmax) chain_.diagonal = diagonal(*chain_.softmax);
    return std::move(chain_);
  }

 private:
  const Product& first() const { return chain_.first; }
  const Product& second() const { return chain_.second.product; }

  bool products_agree() {
    if (!first().is_result_matrix() || !second().a.matrix || first().dtype != second().dtype || second().a.dtype != first().dtype || is_reduced_float(first().dtype)) return false;
    const Matrix& left = *second().a.matrix;
    const Dim depth = second().depth(), columns = first().column_count(), rows = first().row_count();
    const bool dense_rows = (first().result_row_stride() == columns || rows == Dim(1)) && (left.row_stride == columns || second().row_count() == Dim(1));
    if (!(columns == depth && dense_rows && (left.column_stride == Dim(1) || depth == Dim(1)))) return false;
    if (!(first().offset == Dim(0)) || !(left.offset == Dim(0))) return false;
    std::vector<Dim> strides;
    for (const Role& r : first().batch) strides.push_back(r.c);
    const auto order = dense_order(first().batch, strides, rows * columns), other = dense_order(second().batch, left.batch_strides, second().row_count() * columns);
    if (!order || !other || other->size() > order->size()) return false;
    chain_.first_batch = *order;
    return share_batch(*other);
  }

  /// The outer loops of the batch of both are the same; the inner ones of the first are rows of the second.
  bool share_batch(std::span<const std::size_t> other) {
    const auto& order = chain_.first_batch;
    Dim rows = first().row_count();
    chain_.second_batch.resize(other.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Dim& extent = first().batch[order[i]].loop.extent;
      if (i >= other.size()) {
        rows = rows * extent;
        chain_.second_rows.push_back(order[i]);
        continue;
      }
      if (!(extent == second().batch[other[i]].loop.extent)) return false;
      chain_.second_batch[other[i]] = order[i];
    }
    return rows == second().row_count();
  }

  /// The kernel stores one thing, at every point: the left operand of the second product.
  bool find_buffers() {
    const KernelStep& step = chain_.between;
    std::size_t stores = 0;
    for (const Stage& stage : step.kernel.stages) stores += stage.stores.size();
    if (stores != 1 || step.kernel.scatter || step.kernel.stages.back().stores.size() != 1 || step.kernel.inner.size() != 1) return false;
    place_ = step.kernel.stages.back().stores[0].offset;
    target_ = step.kernel.stages.back().stores[0].buffer;
    const auto found = std::find(step.buffers.begin(), step.buffers.end(), first().result);
    source_ = static_cast<std::uint32_t>(found - step.buffers.begin());
    return step.buffers[target_] == second().a.matrix->value && found != step.buffers.end() && source_ != target_;
  }

  bool reads_rows_where_it_writes() const {
    const Kernel& kernel = chain_.between.kernel;
    for (const Operation& op : kernel.operations) {
      if (op.kind == OperationKind::checked || (op.kind == OperationKind::load && op.payload == target_)) return false;
      if (op.kind == OperationKind::load && op.payload == source_ && (op.masked || !(op.offset == place_))) return false;
    }
    Dim dense = Dim::symbol(kernel.inner[0].variable), stride = kernel.inner[0].extent;
    for (std::size_t i = kernel.outer.size(); i-- > 0;) {
      dense = dense + Dim::symbol(kernel.outer[i].variable) * stride;
      stride = stride * kernel.outer[i].extent;
    }
    return kernel.inner[0].extent == first().column_count() && algebra_.simplify(place_) == algebra_.simplify(dense);
  }

  const Operation& operation(OpId id) const { return chain_.between.kernel.operations[id]; }
  bool is_primitive(OpId id, ops::Primitive p) const { return id != kNoOp && operation(id).kind == OperationKind::primitive && operation(id).primitive == p; }

  /// Whether the scores of the softmax are a choice between what is read of the first product and −inf.
  bool masks(const RowSoftmax& softmax) const {
    if (softmax.zeroes_hidden || !is_primitive(softmax.score, ops::Primitive::select)) return false;
    return is_number(operation(operation(softmax.score).args[2]), -std::numeric_limits<double>::infinity());
  }

  /// True when only the shown side of the choice needs what is read of the first product.
  bool reads_behind(OpId choice) const {
    const auto& all = chain_.between.kernel.operations;
    std::vector<bool> reads(all.size(), false);
    for (OpId id = 0; id < all.size(); ++id) {
      reads[id] = all[id].kind == OperationKind::load && all[id].payload == source_;
      for (std::size_t k = 0; k < 3; ++k) {
        const OpId a = all[id].args[k];
        if (a != kNoOp && reads[a] && (id != choice || k == 0)) reads[id] = true;
      }
    }
    const auto needed = [&](OpId id) { return reads[id]; };
    const auto& reductions = chain_.between.kernel.reductions;
    return !reads[chain_.between.kernel.stages.back().stores[0].value] && std::none_of(reductions.begin(), reductions.end(), [&](const Reduction& r) {
      return std::any_of(r.elements.begin(), r.elements.end(), needed);
    });
  }

  /// The position in the rows of `first`, where some outer loops, the last ones, go over them.
  std::optional<Dim> row_of_first() const {
    const std::span<const Loop> outer(chain_.between.kernel.outer);
    for (std::size_t i = outer.size() + 1; i-- > 0;) {
      if (!(count_of(outer.subspan(i)) == first().row_count())) continue;
      Dim row(0);
      for (const Loop& l : outer.subspan(i)) row = row * l.extent + Dim::symbol(l.variable);
      return row;
    }
    return {};
  }

  /// Where the mask shows each row the columns up to its own, moved by a constant: that constant.
  std::optional<std::int64_t> diagonal(const RowSoftmax& softmax) const {
    const OpId choice = softmax.score;
    if (!masks(softmax) || !reads_behind(choice) || !is_primitive(operation(choice).args[0], ops::Primitive::le)) return {};
    const Operation& shown = operation(operation(choice).args[0]);
    const Operation &column = operation(shown.args[0]), &last = operation(shown.args[1]);
    if (column.kind != OperationKind::index || last.kind != OperationKind::index || !(column.offset == Dim::symbol(chain_.between.kernel.inner[0].variable))) return {};
    const auto row = row_of_first();
    if (!row) return {};
    const Dim moved = algebra_.simplify(last.offset - *row);
    return moved.is_constant() ? std::optional(moved.constant()) : std::nullopt;
  }

  IndexAlgebra& algebra_;
  ChainStep chain_;
  Dim place_;
  std::uint32_t source_ = 0, target_ = 0;
};

}  // namespace

std::optional<ChainStep> as_chain(const FusionContext& context, const Product& first, const KernelStep& between, const Product& second) {
  return ChainBuilder(context, first, between, second).build();
}

}  // namespace tenon::codegen
