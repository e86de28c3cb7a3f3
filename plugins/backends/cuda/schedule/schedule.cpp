#include "schedule/schedule.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "drafts/product.h"
#include "isa/ptx_functions.h"
#include "loops/merging.h"

namespace tenon::cuda {

using codegen::Dim;
using codegen::Kernel;
using codegen::Loop;
using codegen::Operation;
using codegen::OperationKind;
using ir::SymbolId;

namespace {

/// Points of a column up to which one thread has it, and of a row; threads that fill a card, so that no team is needed, and half of them. Points
/// of a column from which a large team shares it.
constexpr std::int64_t kColumnOfThread = 16, kRowOfThread = 8, kManyThreads = 64 * 1024, kSomeThreads = kManyThreads / 2, kLongColumn = 128;
/// Iterations from which a loop of a tile is worth it.
constexpr std::int64_t kTileLoop = 16;

std::optional<std::string> without_code(ops::Primitive p, DType dtype) {
  if (!is_function(p) || has_function(p, compute_type(dtype))) return {};
  return fmt::format("{} of {} has no code", ops::name_of(p), name_of(dtype));
}

/// Whether the points of a scatter may run in any order and give the same bits: sums of floats would not, where they meet.
bool is_free_of_order(const Kernel& kernel) {
  if (has_points_apart(kernel)) return true;
  const Operation& made = kernel.operations[kernel.stages.back().stores[0].value];
  const auto is_old = [&](codegen::OpId id) { return id != codegen::kNoOp && kernel.operations[id].kind == OperationKind::old_value; };
  if (made.kind != OperationKind::primitive || is_old(made.args[0]) == is_old(made.args[1])) return false;
  using P = ops::Primitive;
  const bool chooses = made.primitive == P::maximum || made.primitive == P::minimum || made.primitive == P::logical_or || made.primitive == P::logical_and;
  return chooses || (is_int(made.dtype) && (made.primitive == P::add || made.primitive == P::mul));
}

std::optional<std::string> without_code(const Kernel& kernel) {
  if (kernel.scatter && (!kernel.inner.empty() || !is_free_of_order(kernel))) return "a scatter for which the order of its points matters has no code";
  if (kernel.inner.empty() && !kernel.reductions.empty()) return "a reduction of single elements has no code";
  for (const codegen::Buffer& b : kernel.buffers) {
    if (b.row && !may_keep_rows(kernel)) return "a row that is kept has no place";
    if (is_complex(b.dtype)) return fmt::format("{} has no code", name_of(b.dtype));
  }
  const auto dtype_of = [&](const Operation& op) { return op.args[0] == codegen::kNoOp ? op.dtype : kernel.operations[op.args[0]].dtype; };
  for (const Operation& op : kernel.operations) {
    if (op.kind == OperationKind::product) return "a product has no code";
    if (op.kind != OperationKind::primitive) continue;
    if (auto why = without_code(op.primitive, dtype_of(op))) return why;
  }
  for (const codegen::Reduction& r : kernel.reductions)
    for (const ops::ScalarProgram* program : {&r.reducer.init, &r.reducer.combine, &r.reducer.finish})
      for (const ops::Instruction& i : program->instructions)
        if (auto why = without_code(i.op, i.dtype)) return why;
  return {};
}

/// Calls `visit` with each buffer that the kernel reads or writes, and the place in it.
template <class Visit>
void for_each_place(const Kernel& kernel, Visit visit) {
  for (const Operation& op : kernel.operations)
    if (op.kind == OperationKind::load) visit(op.payload, op.offset);
  for (const codegen::Stage& stage : kernel.stages)
    for (const codegen::Store& store : stage.stores) visit(std::uint64_t{store.buffer}, store.offset);
}

/// As many as the widest elements of a vector may be where every contiguous place is aligned; else 1.
unsigned lanes_along(const Kernel& kernel, const Loop& loop, std::span<const std::int64_t> starts) {
  std::size_t widest = 0;
  for_each_place(kernel, [&](std::uint64_t buffer, const Dim& place) {
    if (codegen::mentions(place, loop.variable)) widest = std::max(widest, size_of(kernel.buffers[buffer].dtype));
  });
  if (widest == 0) return 1;
  const auto lanes = static_cast<std::int64_t>(kVectorBytes / widest);
  bool contiguous = false, aligned = true;
  for_each_place(kernel, [&](std::uint64_t buffer, const Dim& place) {
    const auto along = codegen::split_affine(place, loop.variable);
    if (!along || !(along->coefficient == Dim(1))) return;
    contiguous = true;
    aligned = aligned && is_aligned(place, loop.variable, lanes) && (starts.empty() || starts[buffer] % lanes == 0);
  });
  const bool fills = !loop.extent.is_constant() || loop.extent.constant() >= lanes;
  return contiguous && aligned && fills ? static_cast<unsigned>(lanes) : 1;
}

/// What the teams of a block hand each other at a stage, for each lane.
std::size_t shared_by_stage(const Kernel& kernel) {
  std::size_t most = 0;
  for (const codegen::Stage& stage : kernel.stages) {
    std::size_t values = 0;
    for (const auto r : stage.reductions) values += kernel.reductions[r].reducer.accumulators.size();
    most = std::max(most, values);
  }
  return most * kBlock * sizeof(std::uint64_t);
}

bool is_at_most(const Dim& dim, std::int64_t most) { return dim.is_constant() && dim.constant() <= most; }

/// So few inner points that a team would have nothing to share. It shares the last loop alone: windows are such points, where there are many.
bool few_points(const Kernel& kernel) {
  if (kernel.outer.empty() || codegen::depends_on(kernel.inner, kernel.outer.back().variable)) return false;
  const Dim rows = count_of(kernel.outer);
  return is_at_most(count_of(kernel.inner), kRowOfThread) || (is_at_most(kernel.inner.back().extent, kRowOfThread) && rows.is_constant() && rows.constant() >= kManyThreads);
}

std::vector<SymbolId> graph_symbols(const Kernel& kernel) {
  std::set<std::uint32_t> found;
  const auto add = [&](const Dim& dim) {
    dim.for_each_symbol([&](SymbolId s) {
      if (codegen::is_graph_symbol(s)) found.insert(s.value);
    });
  };
  for (const auto* loops : {&kernel.outer, &kernel.inner})
    for (const Loop& l : *loops) add(l.extent);
  for (const Operation& op : kernel.operations) add(op.offset);
  for_each_place(kernel, [&](std::uint64_t, const Dim& place) { add(place); });
  for (const codegen::Reduction& r : kernel.reductions)
    for (const ops::ScalarProgram* program : {&r.reducer.init, &r.reducer.combine, &r.reducer.finish}) std::ranges::for_each(program->dims, add);
  std::vector<SymbolId> symbols;
  for (std::uint32_t s : found) symbols.emplace_back(s);
  return symbols;
}

}  // namespace

bool is_aligned(const Dim& place, SymbolId loop, std::int64_t elements) {
  const auto along = codegen::split_affine(place, loop);
  if (!along || !(along->coefficient == Dim(1)) || along->rest.offset() % elements != 0) return false;
  return std::ranges::all_of(along->rest.terms(), [&](const ir::DimTerm& term) { return term.coefficient % elements == 0; });
}

bool runs_along_columns(const Kernel& kernel) {
  if (kernel.inner.empty() || kernel.outer.empty() || codegen::depends_on(kernel.inner, kernel.outer.back().variable)) return false;
  return codegen::awkward_accesses(kernel, kernel.outer.back().variable) < codegen::awkward_accesses(kernel, kernel.inner.back().variable);
}

const Loop* Schedule::lane_loop(const Kernel& kernel) const {
  const auto& loops = kind == Kind::rows ? kernel.inner : kernel.outer;
  return loops.empty() ? nullptr : &loops.back();
}

namespace {

Dim parts_of(const Dim& extent, std::int64_t size) { return floor_div(extent + Dim(size - 1), Dim(size)); }

/// Vectors along the last outer loop.
Dim vectors_of(const Kernel& kernel, unsigned lanes) {
  if (kernel.outer.empty()) return Dim(1);
  return count_of(std::span(kernel.outer).first(kernel.outer.size() - 1)) * parts_of(kernel.outer.back().extent, lanes);
}

void share_points(Schedule& made, const Kernel& kernel, std::span<const std::int64_t> starts) {
  made.kind = Schedule::Kind::points;
  if (!kernel.outer.empty() && !kernel.scatter) made.lanes = lanes_along(kernel, kernel.outer.back(), starts);
  made.units = vectors_of(kernel, made.lanes);
}

bool keeps_rows(const Kernel& kernel) { return std::ranges::any_of(kernel.buffers, &codegen::Buffer::row); }

void share_rows(Schedule& made, const Kernel& kernel, std::span<const std::int64_t> starts) {
  made.kind = Schedule::Kind::rows;
  const Loop& last = kernel.inner.back();
  made.lanes = lanes_along(kernel, last, starts);
  if (keeps_rows(kernel) && last.extent.constant() % made.lanes != 0) made.lanes = 1;  // a row is kept in vectors alone
  made.units = count_of(kernel.outer);
  const bool small = last.extent.is_constant() && last.extent.constant() <= kRowOfWarp;
  // A block has a row of one vector a thread where warps of their own would leave the card half empty.
  const bool few = made.units.is_constant() && made.units.constant() * kWarp < kSomeThreads && last.extent.is_constant() && last.extent.constant() >= std::int64_t{kBlock} * made.lanes;
  made.team = small && !few ? kWarp : kBlock;
}

/// The widest vectors, and the smallest teams, with which a card is full and what a thread keeps stays in its registers.
void share_kept_columns(Schedule& made, const Kernel& kernel) {
  const std::int64_t points = kernel.inner[0].extent.constant();
  for (const unsigned lanes : {made.lanes, 1u})
    for (const unsigned team : {1u, kColumnTeam, kLargeColumnTeam}) {
      made.lanes = lanes, made.team = team, made.units = vectors_of(kernel, lanes);
      const bool full = made.units.is_constant() && made.units.constant() * team >= kManyThreads;
      if (full && (points + team - 1) / team * lanes <= kKeptByThread) return;
    }
}

void share_columns(Schedule& made, const Kernel& kernel, std::span<const std::int64_t> starts) {
  made.kind = Schedule::Kind::columns;
  const Loop& last = kernel.outer.back();
  const unsigned lanes = lanes_along(kernel, last, starts);
  const bool whole = last.extent.is_constant() && last.extent.constant() % lanes == 0;
  if (whole && lanes * shared_by_stage(kernel) <= kSharedBytes) made.lanes = lanes;
  made.units = vectors_of(kernel, made.lanes);
  if (keeps_rows(kernel)) return share_kept_columns(made, kernel);
  const Dim points = count_of(kernel.inner);
  const bool few = points.is_constant() && points.constant() <= kColumnOfThread, many = made.units.is_constant() && made.units.constant() >= kManyThreads;
  made.team = few || many || shared_by_stage(kernel) > kSharedBytes ? 1 : kColumnTeam;
  if (made.team == 1 || !made.units.is_constant() || !points.is_constant() || points.constant() < kLongColumn) return;
  if (made.units.constant() * kColumnTeam >= kSomeThreads) return;
  made.team = kLargeColumnTeam;
  if (made.units.constant() * kLargeColumnTeam < kSomeThreads) made.lanes = 1, made.units = vectors_of(kernel, 1);
}

/// False where the kernel is not multiplied by tensor cores.
bool share_product(Schedule& made, const Kernel& kernel, std::span<const std::int64_t> starts) {
  made.attention = attention_tile(kernel, starts);
  made.product = made.attention ? std::optional(made.attention->result) : product_tile(kernel, starts);
  if (!made.product) return false;
  made.kind = Schedule::Kind::products;
  made.team = kBlock;
  made.lanes = made.product->lanes;
  made.units = Dim(made.product->blocks());
  return true;
}

std::size_t shared_by_tiles(const Kernel& kernel, std::span<const codegen::OpId> loads) {
  std::size_t bytes = 0;
  for (const codegen::OpId id : loads) bytes += kTileSide * kTileStride * size_of(kernel.buffers[kernel.operations[id].payload].dtype);
  return bytes;
}

/// The loads that are contiguous along `across` and step along the last loop.
std::vector<codegen::OpId> transposed_loads(const Kernel& kernel, SymbolId across, SymbolId last) {
  std::vector<codegen::OpId> found;
  for (codegen::OpId id = 0; id < kernel.operations.size(); ++id) {
    const Operation& op = kernel.operations[id];
    if (op.kind != OperationKind::load || op.masked) continue;
    const auto down = codegen::split_affine(op.offset, across), along = codegen::split_affine(op.offset, last);
    if (down && along && !codegen::is_computed(op.offset) && down->coefficient == Dim(1) && !(along->coefficient == Dim(0)) && !(along->coefficient == Dim(1))) found.push_back(id);
  }
  return found;
}

bool is_worth_tiles(const Loop& loop) { return !loop.extent.is_constant() || loop.extent.constant() >= kTileLoop; }

/// False where nothing is transposed.
bool share_tiles(Schedule& made, const Kernel& kernel) {
  if (kernel.outer.size() < 2 || !is_worth_tiles(kernel.outer.back())) return false;
  for (std::size_t i = kernel.outer.size() - 1; i-- > 0;) {
    if (!is_worth_tiles(kernel.outer[i])) continue;
    auto loads = transposed_loads(kernel, kernel.outer[i].variable, kernel.outer.back().variable);
    if (loads.size() > made.transposed.size()) made.across = i, made.transposed = std::move(loads);
  }
  if (made.transposed.empty() || shared_by_tiles(kernel, made.transposed) > kSharedBytes) return made.transposed.clear(), false;
  made.kind = Schedule::Kind::tiles;
  made.team = kBlock;
  made.units = parts_of(kernel.outer.back().extent, kTileSide);
  for (std::size_t i = 0; i + 1 < kernel.outer.size(); ++i) made.units = made.units * (i == made.across ? parts_of(kernel.outer[i].extent, kTileSide) : kernel.outer[i].extent);
  return true;
}

}  // namespace

std::size_t memory_buffers(const Kernel& kernel) {
  return static_cast<std::size_t>(std::ranges::count_if(kernel.buffers, [](const codegen::Buffer& b) { return !b.row; }));
}

bool has_points_apart(const Kernel& kernel) {
  return std::ranges::all_of(kernel.outer, [&](const Loop& l) { return is_at_most(l.extent, 1) || std::ranges::count(kernel.apart, l.variable) > 0; });
}

std::vector<std::int64_t> starts_of_all_runs(std::span<const std::int64_t> starts, std::size_t buffers) {
  std::vector<std::int64_t> common(starts.empty() ? 0 : buffers, 0);
  for (std::size_t i = 0; i < starts.size(); ++i) common[i % buffers] = std::gcd(common[i % buffers], starts[i]);
  return common;
}

unsigned runs_at_once(const Kernel& kernel, const Schedule& schedule, std::size_t runs) {
  constexpr std::size_t kMostBytes = 4096;  // of all parameters
  const std::size_t room = kMostBytes / sizeof(std::uint64_t) - schedule.symbols.size(), most = std::max<std::size_t>(room / memory_buffers(kernel), 1);
  const std::size_t launches = (runs + most - 1) / most;
  return static_cast<unsigned>((runs + launches - 1) / launches);
}

bool may_keep_rows(const Kernel& kernel) {
  if (kernel.inner.size() != 1 || kernel.scatter || few_points(kernel) || !kernel.inner[0].extent.is_constant()) return false;
  const std::int64_t points = kernel.inner[0].extent.constant();
  if (!runs_along_columns(kernel)) return points <= kKeptRow;
  return points > kColumnOfThread && points <= kKeptColumn && shared_by_stage(kernel) <= kSharedBytes;
}

Result<Schedule> schedule(const Kernel& kernel, std::span<const std::int64_t> starts) {
  if (auto why = without_code(kernel)) return error(Code::unsupported, "{} for this target", *why);
  Schedule made;
  made.symbols = graph_symbols(kernel);
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
    const std::size_t size = size_of(kernel.buffers[i].dtype);
    const bool at_vector = starts.empty() || starts[i] * static_cast<std::int64_t>(size) % kVectorBytes == 0;
    made.alignments.push_back(at_vector ? kVectorBytes : static_cast<unsigned>(size));
  }
  if (share_product(made, kernel, starts)) return made;
  if (!kernel.inner.empty()) runs_along_columns(kernel) || few_points(kernel) ? share_columns(made, kernel, starts) : share_rows(made, kernel, starts);
  else if (kernel.scatter || !share_tiles(made, kernel)) share_points(made, kernel, starts);
  return made;
}

}  // namespace tenon::cuda
