#include "product_run.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tiles/tile.h"
#include "launch/scratch.h"

namespace tenon::llvm_backend {


namespace {

/// The kernels around one product of a batch, with the addresses of this call.
class CallKernels final : public TileKernels {
 public:
  CallKernels(const TiledProduct& step, const CompiledProduct& compiled, const Call& call, const CompiledKernel* between = nullptr) : call_(call), rows_beside_(step.rows_beside) {
    auto bind_if = [&](Bound& bound, const std::optional<CompiledKernel>& kernel) {
      if (kernel) bind(bound, *kernel);
    };
    bind_if(pack_a_, compiled.pack_a);
    bind_if(table_, compiled.table);
    bind_if(pack_b_, compiled.pack_b);
    bind_if(table_b_, compiled.table_b);
    bind_if(epilogue_, compiled.epilogue);
    bind_if(sums_, compiled.sums);
    bind_if(pooling_, compiled.pooling);
    if (between) bind(between_, *between);
  }

  void set_batch(std::span<const std::int64_t> index) { std::copy(index.begin(), index.end(), batch_.begin()); }

  /// Says where the value that is pooled would start, of which some rows are in memory.
  void set_block(void* start) {
    for (Bound* bound : {&epilogue_, &pooling_})
      for (std::size_t i = 0; i < bound->buffers.size(); ++i)
        if (codegen::is_at(bound->kernel->buffers[i], codegen::kBlock)) bound->buffers[i] = start;
  }
  /// Runs units of the kernel that pools the block.
  void pool(std::int64_t first, std::int64_t last) const { run_units(*pooling_.kernel, pooling_.buffers, call_.symbols, first, last); }

  void pack_rows(const Tile& tile, void* panel) const override { run_on(pack_a_, tile, panel); }
  void place_rows(const Tile& tile, std::int64_t* table) const override { run_on(table_, tile, table); }
  void place_columns(const Tile& tile, std::int64_t* table) const override { run_on(table_b_, tile, table); }
  void pack_columns(const Tile& tile, void* panel) const override { run_on(pack_b_, tile, panel); }
  void finish(const Tile& tile, void* product) const override { run_on(epilogue_, tile, product); }
  bool sums_up() const override { return sums_.kernel != nullptr; }
  void sum_up(const Tile& tile) const override { run_on(sums_, tile, nullptr); }
  void find_reads(const Tile& tile, std::vector<Ahead>& reads) const override {
    reads.clear();
    for (const RowsBeside& rows : rows_beside_) {
      const auto* const first = static_cast<const std::byte*>(epilogue_.buffers[rows.buffer]) + (rows.start + tile.row * rows.stride + tile.column) * rows.size;
      reads.emplace_back(first, tile.columns * rows.size, rows.stride * rows.size, tile.rows);
    }
  }
  /// Gives the value of an expression over the symbols of the call and of a tile.
  std::int64_t evaluate(const ir::Dim& d, const Tile& tile) const {
    std::vector<std::int64_t> symbols(call_.symbols.size() + kTileSymbols);
    place(tile, symbols);
    return d.evaluate(symbols);
  }
  /// Runs the kernel between two products on rows of a panel.
  void between(const Tile& rows, void* panel) const { run_on(between_, rows, panel); }

 private:
  struct Bound {
    const CompiledKernel* kernel = nullptr;
    std::vector<void*> buffers;
  };

  void bind(Bound& bound, const CompiledKernel& kernel) const {
    bound.kernel = &kernel;
    for (const Place& place : kernel.buffers) bound.buffers.push_back(codegen::is_at(place, kPanel) ? nullptr : call_.address(place));
  }

  /// Writes the values of all symbols.
  void place(const Tile& tile, std::span<std::int64_t> symbols) const {
    const std::size_t own = call_.symbols.size();
    std::copy(call_.symbols.begin(), call_.symbols.end(), symbols.begin());
    const std::int64_t position[] = {tile.row, tile.rows, tile.column, tile.columns, tile.step, tile.steps};
    std::copy(std::begin(position), std::end(position), symbols.data() + own);
    std::copy(batch_.begin(), batch_.end(), symbols.data() + own + static_cast<std::size_t>(TileSymbol::batch));
  }

  void run_on(const Bound& bound, const Tile& tile, void* panel) const {
    constexpr std::size_t kFew = 48;
    std::array<std::int64_t, kFew> few;
    std::vector<std::int64_t> many;
    const std::size_t own = call_.symbols.size();
    std::int64_t* symbols = few.data();
    if (own + kTileSymbols > kFew) {
      many.resize(own + kTileSymbols);
      symbols = many.data();
    }
    place(tile, {symbols, own + kTileSymbols});
    std::array<void*, 32> few_buffers;
    std::vector<void*> many_buffers;
    void** buffers = few_buffers.data();
    if (bound.buffers.size() > few_buffers.size()) {
      many_buffers.resize(bound.buffers.size());
      buffers = many_buffers.data();
    }
    for (std::size_t i = 0; i < bound.buffers.size(); ++i) buffers[i] = bound.buffers[i] ? bound.buffers[i] : panel;
    run_part(*bound.kernel, {buffers, bound.buffers.size()}, {symbols, own + kTileSymbols});
  }

  const Call& call_;
  std::span<const RowsBeside> rows_beside_;
  Bound pack_a_, table_, pack_b_, table_b_, epilogue_, sums_, pooling_, between_;
  std::array<std::int64_t, kMostBatchLoops> batch_{};
};

/// The sizes of a step in one call.
struct Sizes {
  std::vector<std::int64_t> batch;
  std::int64_t count = 1;
  RunsOfColumns runs;
  MatrixProduct product;
};

/// The columns of all points of some loops.
std::vector<std::int64_t> columns_of(const ColumnLoops& loops, const Call& call) {
  std::vector<std::int64_t> columns{0};
  for (std::size_t i = 0; i < loops.extents.size(); ++i) {
    const std::int64_t extent = loops.extents[i].evaluate(call.symbols), step = loops.steps[i].evaluate(call.symbols);
    std::vector<std::int64_t> all;
    for (const std::int64_t before : columns)
      for (std::int64_t n = 0; n < extent; ++n) all.push_back(before + n * step);
    columns = std::move(all);
  }
  return columns;
}

/// True when the right operand is one dense block that the caller gives, or a constant: it may stay packed from call to call.
bool may_keep(const TiledProduct& step, const CompiledProduct& compiled, const MatrixProduct& p) {
  if (!step.batch.empty() || step.b.pack || step.b.table) return false;
  if (compiled.b.kind != Place::Kind::input && compiled.b.kind != Place::Kind::constant) return false;
  const std::int64_t taps = p.windows ? p.steps : 1, depth = p.windows ? p.step_depth : p.steps * p.step_depth;
  const bool forward = p.b_step >= 0 && p.b_row >= 0 && p.b_column >= 0;
  const std::int64_t rows = p.b_halves ? 2 * depth : depth;
  return forward && (taps - 1) * p.b_step + (rows - 1) * p.b_row + (p.n - 1) * p.b_column + 1 == p.n * taps * rows;
}

Sizes sizes_of(const TiledProduct& step, const CompiledProduct& compiled, const Call& call) {
  auto size = [&](const ir::Dim& d) { return d.evaluate(call.symbols); };
  Sizes sizes;
  for (const ir::Dim& d : step.batch) sizes.batch.push_back(size(d)), sizes.count *= sizes.batch.back();
  MatrixProduct& p = sizes.product;
  p.m = size(step.m), p.n = size(step.n), p.steps = size(step.steps), p.step_depth = size(step.step_depth);
  if (!step.a.pack || step.a.packs_rows_of_value) p.a_row = size(step.a.row_stride), p.a_column = size(step.a.column_stride);
  p.windows = step.a.table.has_value();
  if (p.windows) p.b_step = size(step.b.step_stride);
  if (step.runs) sizes.runs = {columns_of(step.runs->first, call), columns_of(step.runs->second, call)};
  p.b_halves = step.b.in_halves, p.b_widened = step.b.widened;
  if (!step.b.pack && !step.b.table) p.b_row = size(step.b.row_stride), p.b_column = size(step.b.column_stride);
  p.c_row = size(step.c_row_stride);
  if (step.picture) p.picture_height = size(step.picture->height), p.picture_width = size(step.picture->width), p.square_side = step.picture->square_side;
  if (!may_keep(step, compiled, p)) return sizes;
  p.kept = compiled.packed.get(), p.b_constant = compiled.b.kind == Place::Kind::constant;
  p.b_size = static_cast<std::size_t>(p.n * p.steps * p.step_depth) * size_of(compute_type(step.dtype));  // a pair of bfloat16 is as large
  return sizes;
}

using BatchIndex = std::array<std::int64_t, kMostBatchLoops>;

/// The index of one product of a batch.
BatchIndex index_of(std::int64_t number, std::span<const std::int64_t> batch) {
  BatchIndex index{};
  for (std::size_t i = batch.size(); i-- > 0;) {
    index[i] = number % batch[i];
    number /= batch[i];
  }
  return index;
}

/// A step of one call, from which each product of the batch is made.
class Batch {
 public:
  Batch(const TiledProduct& step, const CompiledProduct& compiled, const Call& call) : step_(step), compiled_(compiled), call_(call), sizes_(sizes_of(step, compiled, call)) {}

  const Sizes& sizes() const { return sizes_; }
  double work() const {
    const MatrixProduct& p = sizes_.product;
    return static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.steps * p.step_depth);
  }

  /// The product at `index`; operands without memory of their own are left null.
  MatrixProduct at(const BatchIndex& index, const CallKernels& kernels, bool has_a = true, bool has_c = true) const {
    MatrixProduct p = sizes_.product;
    p.kernels = &kernels;
    if (step_.runs) p.runs = &sizes_.runs;
    if (!step_.a.pack && has_a) p.a = address(compiled_.a, step_.a.offset, step_.a.batch_strides, index);
    if (step_.a.packs_rows_of_value && has_a) p.a_source = address(compiled_.a, step_.a.offset, step_.a.batch_strides, index);
    if (!step_.b.pack) p.b = address(compiled_.b, step_.b.offset, step_.b.batch_strides, index, step_.b.widened.value_or(step_.dtype));
    if (!step_.epilogue && has_c) p.c = address(compiled_.c, step_.c_offset, step_.c_batch_strides, index, compute_type(step_.dtype));
    return p;
  }

 private:
  void* address(const Place& place, const ir::Dim& offset, std::span<const ir::Dim> strides, const BatchIndex& index) const { return address(place, offset, strides, index, step_.dtype); }
  void* address(const Place& place, const ir::Dim& offset, std::span<const ir::Dim> strides, const BatchIndex& index, DType dtype) const {
    std::int64_t elements = offset.evaluate(call_.symbols);
    for (std::size_t i = 0; i < sizes_.batch.size(); ++i) elements += index[i] * strides[i].evaluate(call_.symbols);
    return static_cast<std::byte*>(call_.address(place)) + elements * static_cast<std::int64_t>(size_of(dtype));
  }

  const TiledProduct& step_;
  const CompiledProduct& compiled_;
  const Call& call_;
  Sizes sizes_;
};

/// Runs all products of a batch: many of them on different threads, else each on all threads.
template <class One>
void over_batch(const HostServices& host, std::int64_t count, double work, One one) {
  const bool many = count >= 2 * host.thread_count() && work * static_cast<double>(count) > kParallelProduct;
  if (!many) {
    for (std::int64_t i = 0; i < count; ++i) one(i, true);
    return;
  }
  const auto grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(kParallelProduct / 8 / std::max(1.0, work)));
  host.parallel_for(0, count, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) one(i, false);
  });
}

/// The product of one step, pooled as it comes: threads share the pictures, and the rows of few of them.
class PooledProduct {
 public:
  PooledProduct(const TiledProduct& step, const CompiledProduct& compiled, const Call& call)
      : bands_(*step.pooling), pooling_(bands_.pooling), kernels_(step, compiled, call), pictures_(pooling_.pictures.evaluate(call.symbols)), rows_(pooling_.rows.evaluate(call.symbols)),
        height_(pooling_.height.evaluate(call.symbols)), row_bytes_(bands_.row_bytes),
        units_(pictures_ * rows_ == 0 ? 0 : compiled.pooling->units.evaluate(call.symbols) / (pictures_ * rows_)), has_epilogue_(step.epilogue.has_value()) {}

  const CallKernels& kernels() const { return kernels_; }

  void run(const HostServices& host, const RowsOfProduct& product, bool parallel) const {
    const std::int64_t bands = (rows_ + bands_.band - 1) / bands_.band, threads = parallel ? host.thread_count() : 1;
    const std::int64_t parts = std::clamp<std::int64_t>((2 * threads + pictures_ - 1) / pictures_, 1, bands), share = (bands + parts - 1) / parts * bands_.band;
    auto some = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t part = first; part < last; ++part) {
        const std::int64_t row = part % parts * share;
        run_rows(product, part / parts, row, std::min(rows_, row + share));
      }
    };
    if (threads == 1) some(0, pictures_ * parts);
    else host.parallel_for(0, pictures_ * parts, 1, some);
  }

 private:
  /// Pools rows [row, end) of the results of a picture. What the next band reads too is moved to the start of the block.
  void run_rows(const RowsOfProduct& product, std::int64_t picture, std::int64_t row, std::int64_t end) const {
    CallKernels mine = kernels_;
    Scratch memory;
    auto* const block = static_cast<std::byte*>(memory.take(static_cast<std::size_t>(bands_.rows_of_block() * row_bytes_)));
    std::int64_t held = 0, held_end = 0;  // rows of the picture in the block
    for (; row < end; row += bands_.band) {
      const std::int64_t last = std::min(end, row + bands_.band);
      const std::int64_t low = std::clamp<std::int64_t>(row * pooling_.step + pooling_.first, 0, height_);
      const std::int64_t high = std::clamp<std::int64_t>((last - 1) * pooling_.step + pooling_.first + pooling_.window, low, height_);
      const std::int64_t ready = std::clamp(held_end, low, high);
      if (ready > low) std::memmove(block, block + (low - held) * row_bytes_, static_cast<std::size_t>((ready - low) * row_bytes_));
      held = low, held_end = high;
      const std::int64_t before = picture * height_;
      // An address that the kernels move on from before they read or write there.
      void* const start = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(block) - static_cast<std::uintptr_t>((before + low) * row_bytes_));
      mine.set_block(start);
      if (ready < high) product.compute((before + ready) * pooling_.width, (before + high) * pooling_.width, mine, has_epilogue_ ? nullptr : start);
      mine.pool((picture * rows_ + row) * units_, (picture * rows_ + last) * units_);
    }
  }

  const BandedPooling& bands_;
  const codegen::Pooling& pooling_;
  const CallKernels kernels_;
  std::int64_t pictures_, rows_, height_, row_bytes_;
  std::int64_t units_;  // of a row of results
  bool has_epilogue_;
};

void run_pooled(const HostServices& host, const TiledProduct& step, const CompiledProduct& compiled, const Call& call) {
  const Batch batch(step, compiled, call);
  const PooledProduct pooled(step, compiled, call);
  const bool parallel = batch.work() > kParallelProduct;
  const MatrixProduct product = batch.at({}, pooled.kernels(), true, false);
  multiply_rows(host, compiled.matrix, product, parallel, [&](const RowsOfProduct& rows) { pooled.run(host, rows, parallel); });
}

/// Not all parts of sums need be written.
void clear_parts(const codegen::Kernel& sums, const CompiledKernel& compiled, const Call& call) {
  for (std::size_t i = 0; i < sums.buffers.size(); ++i)
    if (sums.buffers[i].written) std::memset(call.address(compiled.buffers[i]), 0, static_cast<std::size_t>(sums.buffers[i].bytes.evaluate(call.symbols)));
}

}  // namespace

void add_parts(const TiledProduct& step, MatrixParts& parts) {
  if (step.runs && step.picture) parts.emplace(step.dtype, MatrixPart::square_sums);
  if (step.runs) return static_cast<void>(parts.emplace(step.dtype, MatrixPart::runs));
  parts.emplace(step.dtype, MatrixPart::panels);
  if (step.b.widened) return static_cast<void>(parts.emplace(step.dtype, *step.b.widened == DType::f16 ? MatrixPart::rows_of_f16 : MatrixPart::rows_of_bf16));
  if (step.a.table || step.picture) parts.emplace(step.dtype, MatrixPart::windows);
  if (step.a.table && !step.b.pack && !is_reduced_float(step.dtype) && step.n.is_constant() && step.n.constant() <= kDotColumns) parts.emplace(step.dtype, MatrixPart::few_columns);
  const bool few = !step.a.table && (!step.m.is_constant() || step.m.constant() <= kDotRows);
  if (few && !(step.m == ir::Dim(1))) parts.emplace(step.dtype, MatrixPart::few_rows);
  if (few && (!step.m.is_constant() || step.m == ir::Dim(1))) parts.emplace(step.dtype, MatrixPart::one_row);
  if (step.picture && step.picture->square_side == kLargeSquare) parts.emplace(step.dtype, MatrixPart::large_squares);
}

void run(const HostServices& host, const TiledProduct& step, const CompiledProduct& compiled, const Call& call) {
  if (step.pooling) return run_pooled(host, step, compiled, call);
  const Batch batch(step, compiled, call);
  const CallKernels kernels(step, compiled, call);
  if (step.sums) clear_parts(step.sums->kernel, *compiled.sums, call);
  over_batch(host, batch.sizes().count, batch.work(), [&](std::int64_t number, bool parallel) {
    const BatchIndex index = index_of(number, batch.sizes().batch);
    CallKernels mine = kernels;
    mine.set_batch(index);
    multiply(host, compiled.matrix, batch.at(index, mine), parallel);
  });
}

void run(const HostServices& host, const PanelChain& step, const CompiledChain& compiled, const Call& call) {
  const Batch first(step.first, compiled.first, call), second(step.second, compiled.second, call);
  const CallKernels first_kernels(step.first, compiled.first, call, &compiled.between), second_kernels(step.second, compiled.second, call);
  const double work = first.work() + second.work();
  over_batch(host, first.sizes().count, work, [&](std::int64_t number, bool parallel) {
    const BatchIndex index = index_of(number, first.sizes().batch);
    BatchIndex other{};
    for (std::size_t i = 0; i < step.second_batch.size(); ++i) other[i] = index[step.second_batch[i]];
    CallKernels mine = first_kernels, after = second_kernels;
    mine.set_batch(index), after.set_batch(other);
    std::int64_t row = 0;
    for (const std::size_t loop : step.second_rows) row = row * first.sizes().batch[loop] + index[loop];
    ProductChain chain{first.at(index, mine, true, false), second.at(other, after, false, true), row * first.sizes().product.m, [&](const Tile& rows, void* panel) { mine.between(rows, panel); }, {}, step.by_blocks, step.zeroes_hidden};
    if (step.seen) chain.seen = [&](const Tile& rows) { return mine.evaluate(*step.seen, rows); };
    multiply(host, compiled.first.matrix, chain, parallel && work > kParallelProduct);
  });
}

}  // namespace tenon::llvm_backend
