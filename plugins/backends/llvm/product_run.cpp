#include "product_run.h"

#include <algorithm>
#include <array>

#include "fusion/tile.h"

namespace tenon::llvm_backend {

using codegen::ContractionStep;
using codegen::TileSymbol;

namespace {

/// The kernels around one product of a batch, with the addresses of this call.
class CallKernels final : public TileKernels {
 public:
  CallKernels(const CompiledProduct& compiled, const Call& call) : call_(call) {
    bind(pack_a_, compiled.pack_a);
    bind(table_, compiled.table);
    bind(pack_b_, compiled.pack_b);
    bind(epilogue_, compiled.epilogue);
  }

  void set_batch(std::span<const std::int64_t> index) { std::copy(index.begin(), index.end(), batch_.begin()); }

  void pack_rows(const Tile& tile, void* panel) const override { run_on(pack_a_, tile, panel); }
  void place_rows(const Tile& tile, std::int64_t* table) const override { run_on(table_, tile, table); }
  void pack_columns(const Tile& tile, void* panel) const override { run_on(pack_b_, tile, panel); }
  void finish(const Tile& tile, void* product) const override { run_on(epilogue_, tile, product); }

 private:
  struct Bound {
    const CompiledKernel* kernel = nullptr;
    std::vector<void*> buffers;
  };

  void bind(Bound& bound, const std::optional<CompiledKernel>& kernel) const {
    if (!kernel) return;
    bound.kernel = &*kernel;
    for (const Place& place : kernel->buffers) bound.buffers.push_back(place.kind == Place::Kind::panel ? nullptr : call_.address(place));
  }

  void run_on(const Bound& bound, const Tile& tile, void* panel) const {
    constexpr std::size_t kFew = 48;
    std::array<std::int64_t, kFew> few;
    std::vector<std::int64_t> many;
    const std::size_t own = call_.symbols.size();
    std::int64_t* symbols = few.data();
    if (own + codegen::kTileSymbols > kFew) {
      many.resize(own + codegen::kTileSymbols);
      symbols = many.data();
    }
    std::copy(call_.symbols.begin(), call_.symbols.end(), symbols);
    const std::int64_t position[] = {tile.row, tile.rows, tile.column, tile.columns, tile.step, tile.steps};
    std::copy(std::begin(position), std::end(position), symbols + own);
    std::copy(batch_.begin(), batch_.end(), symbols + own + static_cast<std::size_t>(TileSymbol::batch));
    std::array<void*, 32> few_buffers;
    std::vector<void*> many_buffers;
    void** buffers = few_buffers.data();
    if (bound.buffers.size() > few_buffers.size()) {
      many_buffers.resize(bound.buffers.size());
      buffers = many_buffers.data();
    }
    for (std::size_t i = 0; i < bound.buffers.size(); ++i) buffers[i] = bound.buffers[i] ? bound.buffers[i] : panel;
    codegen::IndexFault fault;
    bound.kernel->function(buffers, symbols, 0, bound.kernel->units.evaluate({symbols, own + codegen::kTileSymbols}), &fault);
    check(fault);
  }

  const Call& call_;
  Bound pack_a_, table_, pack_b_, epilogue_;
  std::array<std::int64_t, codegen::kMaxBatchLoops> batch_{};
};

/// The sizes of a step in one call.
struct Sizes {
  std::vector<std::int64_t> batch;
  std::int64_t count = 1;
  MatrixProduct product;
};

/// True when the right operand is one dense block that the caller gives, or a constant: it may stay packed from call to call.
bool may_keep(const ContractionStep& step, const CompiledProduct& compiled, const MatrixProduct& p) {
  if (!step.batch.empty() || step.b.pack) return false;
  if (compiled.b.kind != Place::Kind::input && compiled.b.kind != Place::Kind::constant) return false;
  const std::int64_t taps = p.windows ? p.steps : 1, depth = p.windows ? p.step_depth : p.steps * p.step_depth;
  const bool forward = p.b_step >= 0 && p.b_row >= 0 && p.b_column >= 0;
  return forward && (taps - 1) * p.b_step + (depth - 1) * p.b_row + (p.n - 1) * p.b_column + 1 == p.n * taps * depth;
}

Sizes sizes_of(const ContractionStep& step, const CompiledProduct& compiled, const Call& call) {
  auto size = [&](const ir::Dim& d) { return d.evaluate(call.symbols); };
  Sizes sizes;
  for (const ir::Dim& d : step.batch) sizes.batch.push_back(size(d)), sizes.count *= sizes.batch.back();
  MatrixProduct& p = sizes.product;
  p.m = size(step.m), p.n = size(step.n), p.steps = size(step.steps), p.step_depth = size(step.step_depth);
  if (!step.a.pack) p.a_row = size(step.a.row_stride), p.a_column = size(step.a.column_stride);
  p.windows = step.a.table.has_value();
  if (p.windows) p.b_step = size(step.b.step_stride);
  if (!step.b.pack) p.b_row = size(step.b.row_stride), p.b_column = size(step.b.column_stride);
  p.c_row = size(step.c_row_stride);
  if (step.picture) p.picture_height = size(step.picture->height), p.picture_width = size(step.picture->width);
  if (!may_keep(step, compiled, p)) return sizes;
  p.kept = compiled.packed.get(), p.b_constant = compiled.b.kind == Place::Kind::constant;
  p.b_size = static_cast<std::size_t>(p.n * p.steps * p.step_depth) * size_of(step.dtype);
  return sizes;
}

}  // namespace

void run(const HostServices& host, const ContractionStep& step, const CompiledProduct& compiled, const Call& call) {
  const Sizes sizes = sizes_of(step, compiled, call);
  const CallKernels kernels(compiled, call);
  const auto bytes = static_cast<std::int64_t>(size_of(step.dtype));
  auto size = [&](const ir::Dim& d) { return d.evaluate(call.symbols); };
  auto at = [&](const Place& place, std::int64_t elements) { return static_cast<std::byte*>(call.address(place)) + elements * bytes; };
  const std::int64_t a_offset = step.a.pack ? 0 : size(step.a.offset), b_offset = step.b.pack ? 0 : size(step.b.offset), c_offset = size(step.c_offset);
  auto one = [&](std::int64_t number, bool parallel) {
    std::array<std::int64_t, codegen::kMaxBatchLoops> index{};
    std::int64_t a = a_offset, b = b_offset, c = c_offset;
    for (std::size_t i = step.batch.size(); i-- > 0;) {
      index[i] = number % sizes.batch[i];
      number /= sizes.batch[i];
      if (!step.a.pack) a += index[i] * size(step.a.batch_strides[i]);
      if (!step.b.pack) b += index[i] * size(step.b.batch_strides[i]);
      c += index[i] * size(step.c_batch_strides[i]);
    }
    CallKernels mine = kernels;
    mine.set_batch(index);
    MatrixProduct p = sizes.product;
    p.kernels = &mine;
    if (!step.a.pack) p.a = at(compiled.a, a);
    if (!step.b.pack) p.b = at(compiled.b, b);
    if (!step.epilogue) p.c = at(compiled.c, c);
    multiply(host, compiled.matrix, p, parallel);
  };
  const MatrixProduct& p = sizes.product;
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.steps * p.step_depth);
  const bool over_batch = sizes.count >= 2 * host.thread_count() && work * static_cast<double>(sizes.count) > kParallelProduct;
  if (!over_batch) {
    for (std::int64_t i = 0; i < sizes.count; ++i) one(i, true);
    return;
  }
  const auto grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(kParallelProduct / 8 / std::max(1.0, work)));
  host.parallel_for(0, sizes.count, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) one(i, false);
  });
}

}  // namespace tenon::llvm_backend
