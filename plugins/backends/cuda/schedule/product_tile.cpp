#include "schedule/product_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "drafts/operand.h"
#include "drafts/windows.h"
#include "schedule/schedule.h"

namespace tenon::cuda {

using codegen::Dim;
using codegen::Kernel;
using codegen::Loop;
using codegen::OpId;
using codegen::Operation;
using codegen::OperationKind;

namespace {

/// What a block may have: the largest first. All fit into 99 KB, which every card from sm_80 on has for a block.
struct Shape {
  unsigned rows, columns, bytes, stages, warps_down, groups;
  bool is_exact;  // also for three products of tf32, which take twice the registers
};
constexpr Shape kShapes[] = {{128, 128, 64, 4, 2, 1, false}, {128, 64, 128, 3, 4, 1, true}, {64, 64, 128, 4, 2, 2, true}, {64, 32, 128, 4, 2, 4, true}};
/// Blocks that keep a card busy; those that it runs at once; and those from which the sum is not split.
constexpr std::int64_t kBusyCard = 120, kAtOnce = 264, kFewBlocks = 132, kMostPartsOfSum = 16;
/// The least of a sum that a part has.
constexpr std::int64_t kShortestPart = 512;
/// The same of a part that a block of a cluster has; and how many blocks every card takes as a cluster.
constexpr std::int64_t kShortestOfCluster = 192, kMostOfCluster = 8;

std::int64_t iterations_of(std::span<const Loop> loops) {
  std::int64_t count = 1;
  for (const Loop& l : loops) count *= l.extent.constant();
  return count;
}

}  // namespace

bool has_fixed_sizes(const Kernel& kernel) {
  const auto fixed = [](const Loop& l) { return l.extent.is_constant() && l.extent.constant() > 0; };
  if (!std::ranges::all_of(kernel.outer, fixed) || !std::ranges::all_of(kernel.inner, fixed)) return false;
  return std::ranges::none_of(kernel.operations, [](const Operation& op) {
    bool unknown = false;
    op.offset.for_each_symbol([&](ir::SymbolId s) { unknown = unknown || codegen::is_graph_symbol(s); });
    return unknown;
  });
}

namespace {

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

/// Of an operand as it lies in memory, or is computed.
DType dtype_of(const Kernel& kernel, OpId operand) {
  const auto load = codegen::masked_load(kernel.operations, operand);
  return kernel.operations[load ? load->load : operand].dtype;
}

}  // namespace

DType multiplied_dtype(const Kernel& kernel, std::span<const OpId> operands) {
  const DType first = dtype_of(kernel, operands[0]);
  const bool is_same = std::ranges::all_of(operands, [&](OpId id) { return dtype_of(kernel, id) == first; });
  return is_same && is_half(first) ? first : DType::f32;
}

namespace {

std::vector<OpId> loads_of(const Kernel& kernel, OpId root) {
  std::vector<OpId> loads = codegen::all_needs_of(kernel.operations, {root});
  std::erase_if(loads, [&](OpId id) { return kernel.operations[id].kind != OperationKind::load; });
  return loads;
}

/// The most elements along the loop that lie side by side at a multiple of themselves, in all that is read; a fixed place is as good.
unsigned lanes_along(const Kernel& kernel, std::span<const OpId> loads, const Loop& loop, std::span<const std::int64_t> starts, unsigned most) {
  for (unsigned lanes = most; lanes > 1; lanes /= 2) {
    if (loop.extent.constant() % lanes != 0) continue;
    const bool fits = std::ranges::all_of(loads, [&](OpId id) {
      const Operation& op = kernel.operations[id];
      if (op.masked && codegen::loops_of(kernel.operations, op.args[0]).contains(loop.variable)) return false;
      const bool starts_there = starts.empty() || starts[op.payload] % lanes == 0;
      return !codegen::mentions(op.offset, loop.variable) || (starts_there && is_aligned(op.offset, loop.variable, lanes));
    });
    if (fits) return lanes;
  }
  return 1;
}

bool is_contiguous(const Kernel& kernel, std::span<const OpId> loads, const Loop& loop) {
  return std::ranges::any_of(loads, [&](OpId id) {
    const auto along = codegen::split_affine(kernel.operations[id].offset, loop.variable);
    return along && along->coefficient == Dim(1);
  });
}

/// Copies what lies in memory as it is multiplied, or is zero where a mask hides it.
void copy_where_it_lies(const Kernel& kernel, TileOperand& operand, const Loop& sum, DType dtype) {
  const auto found = codegen::masked_load(kernel.operations, operand.element);
  if (!found || kernel.buffers[kernel.operations[found->load].payload].dtype != dtype || operand.lanes * size_of(dtype) < sizeof(std::uint32_t)) return;
  const Loop& along = operand.along_sum ? sum : operand.loops.back();
  if (found->mask != codegen::kNoOp && operand.lanes > 1 && codegen::loops_of(kernel.operations, found->mask).contains(along.variable)) return;
  operand.copied = found->load, operand.mask = found->mask;
}

/// A step of the sum when warpgroups multiply, in bytes.
constexpr unsigned kSwizzledBytes = 128;

/// Whether a warpgroup reads the operand from shared memory: in whole rows of the sum, copied as it is multiplied.
bool may_swizzle(const ProductTile& product, const TileOperand& operand) {
  const bool is_ready = is_half(product.dtype) || operand.rounded;
  return operand.copied != codegen::kNoOp && operand.along_sum && operand.lanes * size_of(product.dtype) == kVectorBytes && is_ready;
}

/// Shared memory of a block whose warpgroups multiply, in bytes: two share a multiprocessor. And the most stages.
constexpr unsigned kWideBytes = 110 * 1024, kMostStages = 4;

/// Of a product that so many blocks would share: those that add up a part of the sum each.
std::int64_t cluster_for(std::int64_t blocks, std::int64_t depth) {
  const std::int64_t most = blocks > kFewBlocks ? 1 : std::min({kMostOfCluster, kAtOnce / blocks, depth / kShortestOfCluster});
  return most > 1 ? static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most))) : 1;
}

/// Four warps multiply together where the right operand lies as they read it, and rounding is all that float32 needs; of float32 threads else lay it out so
/// where the sum is long. Blocks are large where they fill a card: more of them in a cluster cost more than what larger ones save.
void use_warpgroups(ProductTile& made) {
  const bool is_ready = !made.is_exact() && may_swizzle(made, made.b);
  made.lays_out = !is_ready && made.dtype == DType::f32 && made.depth > kShortSum;
  if (!is_ready && !made.lays_out) return;
  made.by_warpgroups = true, made.b.swizzled = is_ready;
  made.a.swizzled = !made.is_exact() && may_swizzle(made, made.a);
  made.block_bytes = kSwizzledBytes, made.block_rows = 128, made.block_columns = made.columns > 32 ? 64 : 32, made.cluster = 1;
  if (made.a.swizzled && is_half(made.dtype) && made.columns > 64) {  // twice as many columns read little more
    made.block_columns = 128;
    if (made.blocks() < kBusyCard) made.block_columns = 64;
  }
  if (made.blocks() < kBusyCard) made.block_rows = 64;
  made.cluster = static_cast<unsigned>(cluster_for(made.blocks(), made.depth));
  made.warps_down = made.block_rows / 16, made.groups = kBlock / kWarp / made.warps_down;
  made.stages = std::min(kMostStages, (kWideBytes - made.laid_bytes()) / made.stage_bytes());
}

}  // namespace

TileOperand operand_of(const Kernel& kernel, OpId element, const Loop& sum, std::vector<Loop> loops, DType dtype, std::span<const std::int64_t> starts, bool along_side) {
  TileOperand made{.element = element, .loops = std::move(loops)};
  const auto loads = loads_of(kernel, element);
  const auto most = kVectorBytes / static_cast<unsigned>(size_of(dtype));
  const Loop& side = made.loops.back();
  const unsigned of_sum = along_side ? 0 : lanes_along(kernel, loads, sum, starts, most), of_side = lanes_along(kernel, loads, side, starts, most);
  made.along_sum = !along_side && (of_sum != of_side ? of_sum > of_side : is_contiguous(kernel, loads, sum) || !is_contiguous(kernel, loads, side));
  made.lanes = std::max(of_sum, of_side);
  copy_where_it_lies(kernel, made, sum, dtype);
  return made;
}

unsigned lanes_of_result(const Kernel& kernel, std::span<const OpId> operands, std::span<const std::int64_t> starts) {
  std::set<OpId> of_operands;
  for (const OpId operand : operands)
    for (const OpId id : loads_of(kernel, operand)) of_operands.insert(id);
  const Loop& last = kernel.outer.back();
  std::size_t widest = 1;
  std::vector<std::pair<std::uint64_t, Dim>> places;
  const codegen::Stage& stage = kernel.stages.back();
  for (const codegen::Store& store : stage.stores) {
    places.emplace_back(store.buffer, store.offset);
    for (const OpId id : loads_of(kernel, store.value))
      if (!of_operands.contains(id)) places.emplace_back(kernel.operations[id].payload, kernel.operations[id].offset);
  }
  for (const auto& [buffer, place] : places) widest = std::max(widest, size_of(kernel.buffers[buffer].dtype));
  for (auto lanes = static_cast<unsigned>(kVectorBytes / widest); lanes > 1; lanes /= 2) {
    const auto fits = [&](const auto& place) {
      return !codegen::mentions(place.second, last.variable) || (is_aligned(place.second, last.variable, lanes) && (starts.empty() || starts[place.first] % lanes == 0));
    };
    if (last.extent.constant() % lanes == 0 && std::ranges::all_of(places, fits)) return lanes;
  }
  return 1;
}

namespace {

std::int64_t blocks_of(const Shape& shape, std::int64_t rows, std::int64_t columns, std::int64_t batches) {
  return (rows + shape.rows - 1) / shape.rows * ((columns + shape.columns - 1) / shape.columns) * batches;
}

/// The largest blocks of which there are enough for a card; else the smallest.
const Shape& shape_for(std::int64_t rows, std::int64_t columns, std::int64_t batches, bool is_exact) {
  for (const Shape& shape : kShapes)
    if ((shape.is_exact || !is_exact) && blocks_of(shape, rows, columns, batches) >= kBusyCard && 2 * columns > shape.columns && 2 * rows > shape.rows) return shape;
  return columns > 32 ? kShapes[2] : kShapes[3];
}

/// Of a kernel whose blocks sum all up; more than few where it is no product.
std::int64_t blocks_of(const Kernel& kernel, bool rounds) {
  const auto sides = product_sides(kernel);
  if (!sides) return kFewBlocks + 1;
  const std::int64_t rows = iterations_of(sides->rows), columns = iterations_of(sides->columns), batches = iterations_of(sides->batch);
  return blocks_of(shape_for(rows, columns, batches, !rounds && multiplied_dtype(kernel, sides->operands()) == DType::f32), rows, columns, batches);
}

}  // namespace

std::int64_t ProductTile::batches() const { return iterations_of(batch); }

unsigned ProductTile::row_bytes(const TileOperand& operand, unsigned side) const {
  const unsigned spread = operand.swizzled ? 0 : !operand.along_sum && dtype == DType::f32 && !operand.in_pairs ? 32 : 16;
  return row_elements(operand, side) * static_cast<unsigned>(size_of(dtype)) + spread;
}

unsigned ProductTile::bytes(const TileOperand& operand, unsigned side) const { return row_bytes(operand, side) * (operand.along_sum ? side : block_depth()); }

unsigned ProductTile::shared_bytes() const { return std::max(laid_bytes() + stages * stage_bytes(), groups * sum_bytes()); }

std::string ProductTile::text() const {
  const auto operand = [](const TileOperand& o) {
    return fmt::format("{}{}{}{} {}", o.along_sum ? "sum" : "side", o.copied == codegen::kNoOp ? "" : " copied", o.rounded ? " rounded" : "", o.swizzled ? " swizzled" : "", o.lanes);
  };
  return fmt::format("product {} {} {}x{}x{} stages {} warps {} groups {} a {} b {} lanes {} cluster {}{}", name_of(dtype), rounds ? "rounded" : "", block_rows, block_columns, block_bytes, stages, warps_down, groups,
                     operand(a), operand(b), lanes, cluster, by_warpgroups ? " warpgroups" : "");
}

bool is_multiplied(DType dtype) { return dtype == DType::f32 || is_half(dtype); }

std::optional<ProductSides> product_sides(const Kernel& kernel) {
  if (kernel.outer.empty() || kernel.inner.empty() || kernel.reductions.size() != 1 || kernel.reductions[0].elements.size() != 1 || !has_fixed_sizes(kernel)) return {};
  const Operation& product = kernel.operations[kernel.reductions[0].elements[0]];
  ProductSides made{.a = product.args[0], .b = product.args[1]};
  auto in_a = codegen::loops_of(kernel.operations, made.a), in_b = codegen::loops_of(kernel.operations, made.b);
  const ir::SymbolId last = kernel.outer.back().variable;
  if (in_a.contains(last) && !in_b.contains(last)) std::swap(made.a, made.b), std::swap(in_a, in_b);
  for (const Loop& loop : kernel.outer) {
    const bool a = in_a.contains(loop.variable), b = in_b.contains(loop.variable);
    (a == b ? made.batch : a ? made.rows : made.columns).push_back(loop);
  }
  if (made.rows.empty() || made.columns.empty()) return {};
  return made;
}

std::int64_t parts_of_product(const Kernel& kernel, bool rounds, std::int64_t cluster) {
  const std::int64_t blocks = blocks_of(kernel, rounds) * cluster;
  if (blocks > kFewBlocks) return 1;
  const std::int64_t longest = std::ranges::max(kernel.inner, {}, [](const Loop& l) { return l.extent.constant(); }).extent.constant();
  for (std::int64_t parts = std::min({kMostPartsOfSum, kAtOnce / blocks, iterations_of(kernel.inner) / (cluster * kShortestPart)}); parts > 1; --parts)
    if (longest % parts == 0 && (longest / parts) % 8 == 0) return parts;
  return 1;
}

std::int64_t cluster_of_product(const Kernel& kernel, bool rounds) { return product_sides(kernel) ? cluster_for(blocks_of(kernel, rounds), iterations_of(kernel.inner)) : 1; }

std::optional<ProductTile> product_tile(const Kernel& kernel, std::span<const std::int64_t> starts) {
  const auto* marked = dynamic_cast<const Multiplied*>(kernel.schedule.get());
  auto sides = marked ? product_sides(kernel) : std::nullopt;
  if (!sides) return {};
  ProductTile made;
  const Multiplied::Choices& choices = marked->choices;
  made.dtype = multiplied_dtype(kernel, sides->operands()), made.rounds = choices.rounds && made.dtype == DType::f32, made.over_windows = choices.over_windows;
  made.rows = iterations_of(sides->rows), made.columns = iterations_of(sides->columns), made.depth = iterations_of(kernel.inner);
  const Shape& shape = shape_for(made.rows, made.columns, iterations_of(sides->batch), made.is_exact());
  made.block_rows = shape.rows, made.block_columns = shape.columns, made.block_bytes = shape.bytes, made.stages = shape.stages, made.warps_down = shape.warps_down, made.groups = shape.groups;
  made.cluster = static_cast<unsigned>(choices.blocks);
  made.lanes = lanes_of_result(kernel, sides->operands(), starts);
  made.a = operand_of(kernel, sides->a, kernel.inner.back(), std::move(sides->rows), made.dtype, starts);
  made.b = operand_of(kernel, sides->b, kernel.inner.back(), std::move(sides->columns), made.dtype, starts);
  made.batch = std::move(sides->batch);
  for (TileOperand* operand : {&made.a, &made.b})
    if (operand->copied != codegen::kNoOp && !choices.rounded.empty()) operand->rounded = choices.rounded[kernel.operations[operand->copied].payload];
  if (choices.by_warpgroups) use_warpgroups(made);
  return made;
}

bool is_faster_by_library(const ProductTile& product) {
  constexpr double kLargeHalf = 1u << 28, kLargeFloat = 1u << 30, kLargeByWarpgroups = 8 * kLargeFloat, kSlowlyRead = 1u << 22;
  constexpr std::int64_t kLongSum = 256;
  const double multiplications = static_cast<double>(product.batches()) * static_cast<double>(product.rows) * static_cast<double>(product.columns) * static_cast<double>(product.depth);
  const auto is_slow = [&](const TileOperand& operand) { return operand.copied == codegen::kNoOp || operand.lanes * size_of(product.dtype) < kVectorBytes; };
  const bool is_ahead = product.by_warpgroups && (!product.rounds || product.over_windows);
  if (multiplications >= (is_ahead ? kLargeByWarpgroups : is_half(product.dtype) ? kLargeHalf : kLargeFloat)) return true;
  return multiplications >= kSlowlyRead && product.depth > kLongSum && (is_slow(product.a) || is_slow(product.b));
}

}  // namespace tenon::cuda
