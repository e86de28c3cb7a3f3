#include "fusion/chain.h"

#include <algorithm>
#include <limits>

#include "fusion/row_softmax.h"
#include "fusion/tile.h"

namespace tenon::codegen {
namespace {

Dim iterations_of(std::span<const Loop> loops) {
  Dim count(1);
  for (const Loop& l : loops) count = count * l.extent;
  return count;
}

/// Positions in a dense array of the given extents: one for each stride, when the strides are those of its dimensions in some order.
std::optional<std::vector<std::size_t>> dense_order(std::span<const Dim> extents, std::span<const Dim> strides, Dim innermost) {
  std::vector<std::size_t> order, left;
  for (std::size_t i = 0; i < extents.size(); ++i) left.push_back(i);
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](std::size_t i) { return strides[i] == innermost; });
    if (next == left.end()) return {};
    innermost = innermost * extents[*next];
    order.insert(order.begin(), *next);
    left.erase(next);
  }
  return order;
}

class ChainBuilder {
 public:
  ChainBuilder(const FusionContext& context, const ContractionStep& first, KernelStep between, const ContractionStep& second)
      : context_(context), algebra_(context.algebra), kernel_(std::move(between)), chain_{first, second, {}, {}, {}, false, false, {}} {}

  std::optional<ChainStep> build() {
    if (!products_agree() || !find_buffers() || !reads_rows_where_it_writes()) return {};
    place_on_panel();
    const auto softmax = softmax_of(kernel_.kernel);
    if (softmax) chain_.seen = seen_columns(*softmax);
    join_buffers();
    if (softmax) {
      const auto panel = std::find(kernel_.buffers.begin(), kernel_.buffers.end(), kPanel) - kernel_.buffers.begin();
      take_by_blocks(kernel_.kernel, *softmax, static_cast<std::uint32_t>(panel), context_.graph, algebra_);
      chain_.by_blocks = true, chain_.zeroes_hidden = softmax->zeroes_hidden;
    }
    chain_.between = std::move(kernel_);
    return std::move(chain_);
  }

 private:
  bool products_agree() {
    const ContractionStep &first = chain_.first, &second = chain_.second;
    if (first.epilogue || !first.c_in_place || second.a.table || second.a.pack || first.dtype != second.dtype) return false;
    const Dim depth = second.steps * second.step_depth;
    const bool dense_rows = (first.c_row_stride == first.n || first.m == Dim(1)) && (second.a.row_stride == first.n || second.m == Dim(1));
    if (!(first.n == depth && dense_rows && (second.a.column_stride == Dim(1) || depth == Dim(1)))) return false;
    if (!(first.c_offset == Dim(0)) || !(second.a.offset == Dim(0))) return false;
    const auto order = dense_order(first.batch, first.c_batch_strides, first.m * first.n), other = dense_order(second.batch, second.a.batch_strides, second.m * first.n);
    if (!order || !other || other->size() > order->size()) return false;
    order_ = *order;
    return share_batch(*other);
  }

  /// The outer loops of the batch of both are the same; the inner ones of the first are rows of the second.
  bool share_batch(std::span<const std::size_t> other) {
    const ContractionStep &first = chain_.first, &second = chain_.second;
    Dim rows = first.m;
    chain_.second_batch.resize(other.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const Dim& extent = first.batch[order_[i]];
      if (i >= other.size()) {
        rows = rows * extent;
        chain_.second_rows.push_back(order_[i]);
        continue;
      }
      if (!(extent == second.batch[other[i]])) return false;
      chain_.second_batch[other[i]] = order_[i];
    }
    return rows == second.m;
  }

  /// The kernel stores one thing, at every point: the left operand of the second product.
  bool find_buffers() {
    std::size_t stores = 0;
    for (const Stage& stage : kernel_.kernel.stages) stores += stage.stores.size();
    if (stores != 1 || kernel_.kernel.scatter || kernel_.kernel.stages.back().stores.size() != 1 || kernel_.kernel.inner.size() != 1) return false;
    place_ = kernel_.kernel.stages.back().stores[0].offset;
    target_ = kernel_.kernel.stages.back().stores[0].buffer;
    const auto found = std::find(kernel_.buffers.begin(), kernel_.buffers.end(), chain_.first.c);
    source_ = static_cast<std::uint32_t>(found - kernel_.buffers.begin());
    return kernel_.buffers[target_] == chain_.second.a.value && found != kernel_.buffers.end() && source_ != target_;
  }

  bool reads_rows_where_it_writes() const {
    const Kernel& kernel = kernel_.kernel;
    for (const Operation& op : kernel.operations) {
      if (op.kind == OperationKind::checked || (op.kind == OperationKind::load && op.payload == target_)) return false;
      if (op.kind == OperationKind::load && op.payload == source_ && (op.masked || !(op.offset == place_))) return false;
    }
    Dim dense = Dim::symbol(kernel.inner[0].variable), stride = kernel.inner[0].extent;
    for (std::size_t i = kernel.outer.size(); i-- > 0;) {
      dense = dense + Dim::symbol(kernel.outer[i].variable) * stride;
      stride = stride * kernel.outer[i].extent;
    }
    return kernel.inner[0].extent == chain_.first.n && algebra_.simplify(place_) == algebra_.simplify(dense);
  }

  /// The first of the loops that are the rows of the first product; nothing when one of them is rows in part.
  std::optional<std::size_t> rows_in(std::span<const Loop> outer) const {
    for (std::size_t i = outer.size() + 1; i-- > 0;)
      if (iterations_of(outer.subspan(i)) == chain_.first.m) return i;
    return {};
  }

  /// Expresses loops by their position in all of them.
  void stand_at(std::span<const Loop> loops, Dim flat, std::vector<std::pair<SymbolId, Dim>>& replacements) const {
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const Dim size = iterations_of(loops.subspan(i + 1));
      replacements.emplace_back(loops[i].variable, i + 1 == loops.size() ? flat : algebra_.floor_div(flat, size));
      flat = algebra_.mod(flat, size);
    }
  }

  Dim batch_symbol(std::size_t i) const { return tile_symbol(context_.graph, TileSymbol::batch, order_[i]); }
  const Dim& batch_extent(std::size_t i) const { return chain_.first.batch[order_[i]]; }

  /// The position of the product in its batch.
  Dim place_in_batch() const {
    Dim flat(0);
    for (std::size_t i = 0; i < order_.size(); ++i) flat = flat * batch_extent(i) + batch_symbol(i);
    return flat;
  }

  /// Loops of the batch, each by its own symbol where the kernel has the same ones as the products.
  void stand_in_batch(std::span<const Loop> loops, std::vector<std::pair<SymbolId, Dim>>& replacements) const {
    bool same = loops.size() == order_.size();
    for (std::size_t i = 0; same && i < loops.size(); ++i) same = loops[i].extent == batch_extent(i);
    if (!same) return stand_at(loops, place_in_batch(), replacements);
    for (std::size_t i = 0; i < loops.size(); ++i) replacements.emplace_back(loops[i].variable, batch_symbol(i));
  }

  void place_on_panel() {
    Kernel& kernel = kernel_.kernel;
    const std::span<const Loop> outer(kernel.outer);
    const auto rows = rows_in(outer);
    const Dim extent = tile_symbol(context_.graph, TileSymbol::rows);
    const Loop row{algebra_.new_loop(extent), extent};
    std::vector<std::pair<SymbolId, Dim>> replacements;
    const Dim here_in_rows = tile_symbol(context_.graph, TileSymbol::row) + Dim::symbol(row.variable);
    if (rows) stand_in_batch(outer.first(*rows), replacements);
    if (rows) stand_at(outer.subspan(*rows), here_in_rows, replacements);
    else stand_at(outer, place_in_batch() * chain_.first.m + here_in_rows, replacements);
    const Dim here = Dim::symbol(row.variable) * chain_.first.n + Dim::symbol(kernel.inner[0].variable);
    for (Operation& op : kernel.operations) {
      const bool source = op.kind == OperationKind::load && op.payload == source_;
      for (const auto& [loop, by] : replacements) op.offset = algebra_.substitute(op.offset, loop, by);
      if (source) op.offset = here;
    }
    kernel.stages.back().stores[0].offset = here;
    kernel.outer = {row};
  }

  const Operation& operation(OpId id) const { return kernel_.kernel.operations[id]; }
  bool is_primitive(OpId id, ops::Primitive p) const { return id != kNoOp && operation(id).kind == OperationKind::primitive && operation(id).primitive == p; }

  /// Whether the scores of the softmax are a choice between what is read of the first product and −inf.
  bool masks(const RowSoftmax& softmax) const {
    if (softmax.zeroes_hidden || !is_primitive(softmax.score, ops::Primitive::select)) return false;
    return is_number(operation(operation(softmax.score).args[2]), -std::numeric_limits<double>::infinity());
  }

  /// True when only the shown side of the choice needs what is read of the first product.
  bool reads_behind(OpId choice) const {
    const auto& all = kernel_.kernel.operations;
    std::vector<bool> reads(all.size(), false);
    for (OpId id = 0; id < all.size(); ++id) {
      reads[id] = all[id].kind == OperationKind::load && all[id].payload == source_;
      for (std::size_t k = 0; k < 3; ++k) {
        const OpId a = all[id].args[k];
        if (a != kNoOp && reads[a] && (id != choice || k == 0)) reads[id] = true;
      }
    }
    const auto needed = [&](OpId id) { return reads[id]; };
    const auto& reductions = kernel_.kernel.reductions;
    return !reads[kernel_.kernel.stages.back().stores[0].value] && std::none_of(reductions.begin(), reductions.end(), [&](const Reduction& r) {
      return std::any_of(r.elements.begin(), r.elements.end(), needed);
    });
  }

  /// Where the mask shows columns up to the row's own, moved by a constant: how many columns the last of a block of rows sees.
  std::optional<Dim> seen_columns(const RowSoftmax& softmax) const {
    const OpId choice = softmax.score;
    if (!masks(softmax) || !reads_behind(choice) || !is_primitive(operation(choice).args[0], ops::Primitive::le)) return {};
    const Operation& shown = operation(operation(choice).args[0]);
    const Operation &column = operation(shown.args[0]), &last = operation(shown.args[1]);
    if (column.kind != OperationKind::index || last.kind != OperationKind::index) return {};
    const SymbolId row = kernel_.kernel.outer[0].variable;
    if (!(column.offset == Dim::symbol(kernel_.kernel.inner[0].variable))) return {};
    const Dim own = tile_symbol(context_.graph, TileSymbol::row) + Dim::symbol(row), moved = last.offset - own;
    if (!moved.is_constant()) return {};
    return tile_symbol(context_.graph, TileSymbol::row) + tile_symbol(context_.graph, TileSymbol::rows) + moved;
  }

  /// What the kernel reads and what it writes is one panel.
  void join_buffers() {
    Kernel& kernel = kernel_.kernel;
    auto number = [&](std::uint64_t b) { return b == source_ ? target_ - (target_ > source_) : b - (b > source_); };
    for (Operation& op : kernel.operations)
      if (op.kind == OperationKind::load) op.payload = number(op.payload);
    kernel.stages.back().stores[0].buffer = static_cast<std::uint32_t>(number(target_));
    kernel.buffers[target_] = {chain_.first.dtype, Dim(0), true};
    kernel_.buffers[target_] = kPanel;
    kernel.buffers.erase(kernel.buffers.begin() + source_);
    kernel_.buffers.erase(kernel_.buffers.begin() + source_);
  }

  const FusionContext& context_;
  IndexAlgebra& algebra_;
  KernelStep kernel_;
  ChainStep chain_;
  std::vector<std::size_t> order_;  // of the batch loops of `first`, the outermost of the value first
  Dim place_;
  std::uint32_t source_ = 0, target_ = 0;
};

}  // namespace

std::optional<ChainStep> as_chain(const FusionContext& context, const ContractionStep& first, const KernelStep& between, const ContractionStep& second) {
  return ChainBuilder(context, first, between, second).build();
}

}  // namespace tenon::codegen
