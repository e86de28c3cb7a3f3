#include "tiles/tiled_product.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "decisions/loop_shaping.h"
#include "drafts/operand.h"
#include "matrix/dot_kernel.h"
#include "matrix/winograd.h"

namespace tenon::llvm_backend {

using namespace codegen;

namespace {

/// What stands for loops of the product in kernels beside it.
using Replacements = std::vector<std::pair<SymbolId, Dim>>;

/// A kernel of what an operand's element needs, with loads numbered anew.
class OperandKernel {
 public:
  OperandKernel(const Product& product, const TilingContext& context, const Replacements& replacements) : product_(product), context_(context), replacements_(replacements) {}

  OpId copy(OpId id) {
    if (auto known = copies_.find(id); known != copies_.end()) return known->second;
    Operation op = product_.operations[id];
    for (OpId& a : op.args)
      if (a != kNoOp) a = copy(a);
    op.offset = placed(op.offset);
    if (op.kind == OperationKind::load) op.payload = buffer(product_.buffers[op.payload]);
    return copies_[id] = add(op);
  }

  /// Adds an operation that gives where the load reads.
  OpId place_of(OpId load) {
    const Dim offset = placed(product_.operations[load].offset);
    if (offset.is_constant()) return number(offset.constant());
    return add({.kind = OperationKind::index, .dtype = DType::i64, .offset = offset});
  }

  OpId number(std::int64_t n) { return add({.kind = OperationKind::constant, .dtype = DType::i64, .payload = static_cast<std::uint64_t>(n)}); }

  OpId add(Operation op) {
    result_.kernel.operations.push_back(std::move(op));
    return static_cast<OpId>(result_.kernel.operations.size() - 1);
  }

  /// The kernel that stores the value at `offset` of the last of its buffers, kPanel. Its own loops remain to be set.
  KernelStep storing(OpId value, DType dtype, Dim offset) {
    result_.kernel.buffers.push_back({dtype, Dim(0), true});
    result_.buffers.push_back(kPanel);
    const auto panel = static_cast<std::uint32_t>(result_.buffers.size() - 1);
    result_.kernel.stages.push_back({StageKind::row, {}, {{panel, std::move(offset), value}}});
    return std::move(result_);
  }

 private:
  Dim placed(Dim offset) const {
    for (const auto& [loop, by] : replacements_) offset = context_.algebra.substitute(offset, loop, by);
    return offset;
  }

  std::uint64_t buffer(ValueId value) {
    auto found = std::find(result_.buffers.begin(), result_.buffers.end(), value);
    if (found == result_.buffers.end()) {
      const ir::Type& type = context_.graph.type(value);
      result_.kernel.buffers.push_back({type.dtype, type.element_count() * Dim(static_cast<std::int64_t>(size_of(type.dtype))), false});
      found = result_.buffers.insert(result_.buffers.end(), value);
    }
    return static_cast<std::uint64_t>(found - result_.buffers.begin());
  }

  const Product& product_;
  const TilingContext& context_;
  const Replacements& replacements_;
  std::unordered_map<OpId, OpId> copies_;
  KernelStep result_;
};

class ProductTiler {
 public:
  /// `reads_halves`: operands of half precision are read where they lie, if that can be.
  ProductTiler(const Product& product, const TilingContext& context, bool reads_halves)
      : product_(product), context_(context), algebra_(context.algebra), sum_dtype_(compute_type(product.dtype)), dtype_(reads_halves && in_pairs() ? product.b.dtype : sum_dtype_),
        widens_(reads_halves && widens_right()), width_(context.machine.panel_columns(dtype_)) {}

  TiledProduct tile() {
    made_.dtype = dtype_, made_.c = product_.result, made_.c_offset = product_.offset;
    made_.m = product_.row_count(), made_.n = product_.column_count();
    for (const Role& r : product_.batch) made_.batch.push_back(r.loop.extent), made_.c_batch_strides.push_back(r.c);
    made_.c_row_stride = product_.result_row_stride();
    if (is_paired() && !product_.a.windows) made_.steps = halved(product_.depth()), made_.step_depth = Dim(1);
    else set_sum();
    place_loops();
    if (product_.a.windows) read_windows(*product_.a.windows);
    else if (reads_left_in_place()) read(made_.a, *product_.a.matrix);
    else pack_left();
    if (product_.b.windows) read_runs(*product_.b.windows);
    else if (reads_right_in_place()) read(made_.b, *product_.b.matrix);
    else made_.b.pack = pack_columns();
    if (widens_) made_.b.widened = product_.b.dtype;
    if (is_paired()) pair(made_.a, made_.b);
    return std::move(made_);
  }

  /// The kernel that runs on each tile of the product: `kernel` over the points of the result, reading the product. After `tile`.
  KernelStep on_tiles(KernelStep over_result) const {
    Kernel& kernel = over_result.kernel;
    auto place = [&](Dim& d) {
      for (std::size_t i = 0, loop = 0; i < index_.size() && loop < kernel.outer.size(); ++i) {
        if (index_[i].is_constant()) continue;
        d = algebra_.substitute(d, kernel.outer[loop++].variable, index_[i]);
      }
    };
    const auto tile = static_cast<std::uint64_t>(kernel.buffers.size());
    const bool one_row = product_.row_count() == Dim(1), one_column = product_.column_count() == Dim(1);
    // Lanes over the one column that there is would all store to one place.
    std::vector<Loop> loops;
    Dim in_tile(0);
    if (!one_row) loops.push_back(row_), in_tile = Dim::symbol(row_.variable) * Dim(width_);
    if (!one_column) loops.push_back(column_), in_tile = in_tile + Dim::symbol(column_.variable);
    for (Operation& op : kernel.operations) {
      place(op.offset);
      if (op.kind != OperationKind::product) continue;
      op.kind = OperationKind::load, op.payload = tile, op.offset = in_tile;
    }
    for (Stage& stage : kernel.stages)
      for (Store& store : stage.stores) place(store.offset);
    kernel.buffers.push_back({sum_dtype_, Dim(0), false});
    over_result.buffers.push_back(kPanel);
    kernel.outer = std::move(loops);
    run_in_one_block(kernel, one_column ? kFinishedRows : width_);
    return over_result;
  }

  /// The kernel that adds up columns of the rows of a tile, which are in memory. After `tile`.
  KernelStep on_rows(ColumnSums sums) const {
    Kernel& kernel = sums.kernel.kernel;
    const Replacements replacements{{kernel.outer[0].variable, symbol(TileSymbol::column) + Dim::symbol(column_.variable)},
                                    {kernel.inner[0].variable, symbol(TileSymbol::row) + Dim::symbol(row_.variable)},
                                    {sums.part, symbol(TileSymbol::step)}};
    const auto place = [&](Dim& d) {
      for (const auto& [loop, by] : replacements) d = algebra_.substitute(d, loop, by);
    };
    for (Operation& op : kernel.operations) place(op.offset);
    for (Stage& stage : kernel.stages)
      for (Store& store : stage.stores) place(store.offset);
    kernel.outer = {column_}, kernel.inner = {row_};
    run_in_one_block(kernel, width_);
    return std::move(sums.kernel);
  }

  /// What a kernel on tiles reads a row at a time beside the product: short runs, of which the processor does not guess the next one. None where all
  /// of it is near. After `on_tiles`.
  std::vector<RowsBeside> rows_beside(const Kernel& kernel) const {
    constexpr std::int64_t kNear = 256 * 1024;
    const Dim elements = product_.row_count() * product_.column_count();
    if (!elements.is_constant()) return {};
    std::vector<RowsBeside> found;
    std::int64_t bytes_of_place = 0;
    for (const Operation& op : kernel.operations) {
      if (op.kind != OperationKind::load || op.payload + 1 == kernel.buffers.size()) continue;
      const auto rows = rows_at(op.offset);
      if (!rows) continue;
      const auto size = static_cast<std::int64_t>(size_of(kernel.buffers[op.payload].dtype));
      found.push_back({op.payload, rows->first, rows->second, size});
      bytes_of_place += size;
    }
    return elements.constant() * bytes_of_place > kNear ? found : std::vector<RowsBeside>();
  }

 private:
  Dim symbol(TileSymbol which, std::size_t loop = 0) const { return context_.symbols(which, loop); }

  // ---- half precision: operands are packed as what their products are summed in, or multiplied in pairs as they are

  static bool is_even(const Dim& d) { return d.is_constant() && d.constant() % 2 == 0; }
  bool is_paired() const { return is_reduced_float(dtype_); }

  /// Pairs of the right operand lie side by side, or packing puts them so.
  bool in_pairs() const {
    if (product_.a.dtype != product_.b.dtype || !context_.machine.multiplies_pairs(product_.b.dtype) || !product_.b.matrix || !is_even(product_.depth()) || product_.depth().constant() < 4) return false;
    if (product_.a.windows) return true;
    const Matrix& b = *product_.b.matrix;
    return b.column_stride == Dim(1) || (b.row_stride == Dim(1) && (is_even(b.column_stride) || product_.column_count() == Dim(1)));
  }

  bool reads_left_in_place() const {
    if (!product_.a.matrix || !is_paired()) return product_.a.matrix && product_.a.dtype == dtype_;
    return product_.a.matrix->column_stride == Dim(1) && (is_even(product_.a.matrix->row_stride) || product_.row_count() == Dim(1));
  }
  bool reads_right_in_place() const { return product_.b.matrix && (product_.b.dtype == dtype_ || widens_); }

  /// Few rows are multiplied by columns that are contiguous, which dot products convert as they read them.
  bool widens_right() const {
    if (is_paired() || !product_.b.matrix || !is_reduced_float(product_.b.dtype) || !context_.machine.widens(product_.b.dtype) || product_.a.windows) return false;
    const Dim rows = product_.row_count();
    return rows.is_constant() && rows.constant() <= kDotRows && product_.b.matrix->row_stride == Dim(1) && !(product_.b.matrix->column_stride == Dim(1));
  }

  static Dim halved(const Dim& d) { return is_even(d) ? Dim(d.constant() / 2) : Dim(0); }

  /// Strides by pairs. Beside windows they are of single ones.
  void pair(TiledOperand& a, TiledOperand& b) const {
    if (!a.pack && !a.table) a.row_stride = halved(a.row_stride);
    b.in_halves = a.table || b.row_stride != Dim(1) || (b.column_stride == Dim(1) && !(product_.column_count() == Dim(1)));
    if (!b.in_halves) b.column_stride = halved(b.column_stride);
  }

  /// Taps, then runs; the whole sum where both operands are matrices; else parts of the first loop, so that some of it can be packed at a time.
  void set_sum() {
    const std::span<const Loop> summed(product_.summed);
    const bool one_sum = (reads_left_in_place() && (product_.b.windows || reads_right_in_place())) || summed.empty();
    const std::size_t outer = product_.a.windows ? product_.a.windows->taps.size() : one_sum ? summed.size() : 1;
    made_.steps = count_of(summed.first(outer)), made_.step_depth = count_of(summed.subspan(outer));
    if (is_paired()) made_.step_depth = halved(made_.step_depth);
  }

  void read(TiledOperand& to, const Matrix& from) const {
    to.value = from.value, to.offset = from.offset, to.batch_strides = from.batch_strides;
    to.row_stride = from.row_stride, to.column_stride = from.column_stride, to.step_stride = from.tap_stride;
  }

  void read_windows(const Windows& windows) {
    if (const auto& picture = product_.picture) {
      const double weights = algebra_.estimate(windows.run[0].extent) * estimated_points(algebra_, loops_of(product_.columns));
      const std::int64_t side = picture->relaxed ? context_.machine.side_of_squares(weights, algebra_.estimate(picture->height), algebra_.estimate(picture->width)) : kSmallSquare;
      made_.picture = {picture->height, picture->width, side};
    }
    read_by_table(made_.a, windows, table(windows, replacements_, kFinishedRows, kFinishedRows));
    made_.a.column_stride = Dim(1);
  }

  /// The rows of a tile of the table are places of the sum.
  void read_runs(const Windows& windows) {
    Replacements replacements = batch_;
    Dim place = symbol(TileSymbol::row) + Dim::symbol(row_.variable);
    for (std::size_t i = 0; i < product_.summed.size(); ++i) {
      const Dim size = count_of(std::span(product_.summed).subspan(i + 1));
      replacements.emplace_back(product_.summed[i].variable, algebra_.floor_div(place, size));
      place = algebra_.mod(place, size);
    }
    read_by_table(made_.b, windows, table(windows, replacements, kPlacesOfTable, kPlacedTogether));
    made_.runs = {columns_of(windows.taps), columns_of(windows.run)};
    if (const auto& picture = product_.picture) made_.picture = {picture->height, picture->width, kSmallSquare};
  }

  ColumnLoops columns_of(std::span<const Loop> loops) const {
    ColumnLoops made;
    for (const Loop& loop : loops)
      for (std::size_t i = 0; i < product_.columns.size(); ++i) {
        if (product_.columns[i].loop.variable != loop.variable) continue;
        made.extents.push_back(loop.extent), made.steps.push_back(count_of(loops_of(std::span(product_.columns).subspan(i + 1))));
      }
    return made;
  }

  void read_by_table(TiledOperand& to, const Windows& windows, KernelStep table) const {
    to.value = product_.buffers[product_.operations[windows.load].payload];
    to.batch_strides.assign(made_.batch.size(), Dim(0));
    to.table = std::move(table);
  }

  /// Writes where runs start, those of a tap `apart` from the next one's, of at most so many rows together; lanes run over rows.
  KernelStep table(const Windows& windows, Replacements replacements, std::int64_t apart, std::int64_t together) const {
    std::vector<Loop> loops;
    Dim position(0);
    for (const Loop& tap : windows.taps) {
      loops.push_back({algebra_.new_loop(tap.extent), tap.extent});
      position = position * tap.extent + Dim::symbol(loops.back().variable);
      replacements.emplace_back(tap.variable, Dim::symbol(loops.back().variable));
    }
    for (const Loop& run : windows.run) replacements.emplace_back(run.variable, Dim(0));
    OperandKernel kernel(product_, context_, replacements);
    OpId place = kernel.place_of(windows.load);
    if (windows.mask != kNoOp) {
      Operation choice{.kind = OperationKind::primitive, .primitive = ops::Primitive::select, .dtype = DType::i64};
      choice.args[0] = kernel.copy(windows.mask), choice.args[1] = place, choice.args[2] = kernel.number(-1);
      place = kernel.add(choice);
    }
    KernelStep step = kernel.storing(place, DType::i64, position * Dim(apart) + Dim::symbol(row_.variable));
    set_loops(step.kernel, row_, std::move(loops));
    run_in_one_block(step.kernel, together);
    return step;
  }

  static void set_loops(Kernel& kernel, const Loop& outer, std::vector<Loop> inner) {
    kernel.outer = {outer};
    kernel.inner = std::move(inner);
    if (!kernel.inner.empty()) kernel.stages[0].kind = StageKind::map;
  }

  /// start and stride where a place is start + row * stride + column, with both constant and the stride not 0.
  std::optional<std::pair<std::int64_t, std::int64_t>> rows_at(const Dim& place) const {
    const Dim row = symbol(TileSymbol::row) + Dim::symbol(row_.variable), column = symbol(TileSymbol::column) + Dim::symbol(column_.variable);
    const auto at = [&](std::int64_t of_row) {
      Dim d = place;
      for (const TileSymbol zero : {TileSymbol::row, TileSymbol::column}) d = algebra_.substitute(d, SymbolId(static_cast<std::uint32_t>(context_.symbols.first + static_cast<std::size_t>(zero))), Dim(0));
      return algebra_.substitute(algebra_.substitute(d, column_.variable, Dim(0)), row_.variable, Dim(of_row));
    };
    const Dim start = at(0), stride = at(1) - start;
    if (!start.is_constant() || !stride.is_constant() || stride.constant() == 0 || !(start + row * stride + column == place)) return std::nullopt;
    return std::pair(start.constant(), stride.constant());
  }

  void stand_at(std::span<const Role> roles, Dim flat) {
    for (std::size_t i = 0; i < roles.size(); ++i) {
      const Dim size = count_of(loops_of(roles.subspan(i + 1)));
      replacements_.emplace_back(roles[i].loop.variable, algebra_.floor_div(flat, size));
      flat = algebra_.mod(flat, size);
    }
  }

  /// Expresses the loops of the product by the position of a tile and two loops within it.
  void place_loops() {
    row_ = {algebra_.new_loop(symbol(TileSymbol::rows)), symbol(TileSymbol::rows)};
    column_ = {algebra_.new_loop(symbol(TileSymbol::columns)), symbol(TileSymbol::columns)};
    for (std::size_t i = 0; i < product_.batch.size(); ++i) batch_.emplace_back(product_.batch[i].loop.variable, symbol(TileSymbol::batch, i));
    replacements_ = batch_;
    stand_at(product_.rows, symbol(TileSymbol::row) + Dim::symbol(row_.variable));
    stand_at(product_.columns, symbol(TileSymbol::column) + Dim::symbol(column_.variable));
    for (Dim d : product_.index) {
      for (const auto& [loop, by] : replacements_) d = algebra_.substitute(d, loop, by);
      index_.push_back(d);
    }
  }

  /// The summed loops inside a part of the first, and the position in it.
  std::pair<std::vector<Loop>, Dim> part_of_sum(Replacements& replacements) const {
    std::vector<Loop> loops;
    Dim position(0);
    for (std::size_t i = 0; i < product_.summed.size(); ++i) {
      const Loop& summed = product_.summed[i];
      const Dim extent = i == 0 && !is_paired() ? symbol(TileSymbol::steps) : summed.extent;
      loops.push_back({algebra_.new_loop(extent), extent});
      position = position * summed.extent + Dim::symbol(loops.back().variable);
      replacements.emplace_back(summed.variable, (i == 0 && !is_paired() ? symbol(TileSymbol::step) : Dim(0)) + Dim::symbol(loops.back().variable));
    }
    return {std::move(loops), position};
  }

  void pack_left() {
    made_.a.pack = pack_rows();
    if (!rows_behind(product_.a.element)) return;
    made_.a.packs_rows_of_value = true;
  }

  std::vector<Loop> all_loops() const {
    std::vector<Loop> all;
    for (const auto* roles : {&product_.batch, &product_.rows, &product_.columns})
      for (const Role& r : *roles) all.push_back(r.loop);
    all.insert(all.end(), product_.summed.begin(), product_.summed.end());
    return all;
  }

  /// Looks for rows that lie one stride apart among what `root` reads, and says where they lie.
  bool rows_behind(OpId root) {
    const std::size_t batch = product_.batch.size(), rows = product_.rows.size(), outer = batch + rows + product_.columns.size();
    const auto here = in_place(product_.operations, product_.buffers, root, all_loops());
    if (here && rows > 0 && context_.graph.type(here->value).dtype == dtype_) {
      const auto strides = std::span<const Dim>(here->strides), of_rows = strides.subspan(batch, rows), of_sum = strides.subspan(outer);
      const bool one_sum = stepping_as_one(product_.summed, of_sum) == of_sum.size(), one_row = stepping_as_one(loops_of(product_.rows), of_rows) == rows;
      if (one_sum && one_row && !(of_rows.back() == Dim(0)) && strides.back() == Dim(1)) {
        const Dim summed = of_sum.empty() ? Dim(1) : of_sum.back();
        read(made_.a, {here->value, here->offset, {strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(batch)}, of_rows.back(), summed, {}});
        return true;
      }
    }
    return std::ranges::any_of(product_.operations[root].args, [&](OpId a) { return a != kNoOp && rows_behind(a); });
  }

  /// Writes rows one after the other, each as long as the part of the sum.
  KernelStep pack_rows() const {
    Replacements replacements = replacements_;
    auto [loops, position] = part_of_sum(replacements);
    const Dim depth = product_.summed.empty() || is_paired() ? product_.depth() : symbol(TileSymbol::steps) * made_.step_depth;
    OperandKernel kernel(product_, context_, replacements);
    const OpId element = kernel.copy(product_.a.element);
    KernelStep step = kernel.storing(element, dtype_, Dim::symbol(row_.variable) * depth + position);
    set_loops(step.kernel, row_, std::move(loops));
    shape_loops(step.kernel, algebra_, context_.machine.lanes());
    return step;
  }

  /// Writes a panel: a row of the tile's width for each step of the sum. Lanes run over columns; what does not depend on the first
  /// summed loop (the padding of a convolution) is computed outside of it.
  KernelStep pack_columns() const {
    Replacements replacements = replacements_;
    auto [loops, position] = part_of_sum(replacements);
    OperandKernel kernel(product_, context_, replacements);
    const OpId element = kernel.copy(product_.b.element);
    KernelStep step = kernel.storing(element, dtype_, position * Dim(width_) + Dim::symbol(column_.variable));
    if (!loops.empty()) std::rotate(loops.begin(), loops.begin() + 1, loops.end());
    set_loops(step.kernel, column_, std::move(loops));
    run_in_one_block(step.kernel, width_);
    return step;
  }

  const Product& product_;
  const TilingContext& context_;
  IndexAlgebra& algebra_;
  const DType sum_dtype_, dtype_;  // of sums, and of what is multiplied
  const bool widens_;  // the right operand, of half precision
  const std::int64_t width_;  // of a panel
  Replacements batch_, replacements_;
  Loop row_, column_;       // within a tile
  std::vector<Dim> index_;  // of the result, at them
  TiledProduct made_;
};

/// The buffers that read or write the block stay near by its size.
void note_block(KernelStep& step, const Dim& bytes) {
  for (std::size_t i = 0; i < step.buffers.size(); ++i)
    if (step.buffers[i] == codegen::kBlock && step.kernel.buffers[i].is_narrow()) step.kernel.buffers[i].bytes = bytes;
}

BandedPooling in_bands(ContractionStep& step, const CpuMachine& machine) {
  const std::int64_t row = step.pooling->width * step.product.column_count().constant();
  BandedPooling made{std::move(*step.pooling), 0};
  made.band = machine.pooled_rows(row, made.pooling.step, made.pooling.window);
  made.row_bytes = row * static_cast<std::int64_t>(size_of(step.product.dtype));
  const Dim block(made.rows_of_block() * made.row_bytes);
  note_block(made.pooling.kernel, block);
  if (step.epilogue) note_block(*step.epilogue, block);
  return made;
}

}  // namespace

TiledProduct tiled(const Product& product, const TilingContext& context) { return ProductTiler(product, context, false).tile(); }

TiledProduct tiled(ContractionStep step, const TilingContext& context) {
  ProductTiler tiler(step.product, context, true);
  TiledProduct made = tiler.tile();
  if (step.pooling) made.pooling = in_bands(step, context.machine);
  if (step.sums) made.sums = tiler.on_rows(std::move(*step.sums));
  if (step.epilogue) made.epilogue = tiler.on_tiles(std::move(*step.epilogue)), made.rows_beside = tiler.rows_beside(made.epilogue->kernel);
  return made;
}

}  // namespace tenon::llvm_backend
