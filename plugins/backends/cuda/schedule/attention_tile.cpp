#include "schedule/attention_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "drafts/operand.h"

namespace tenon::cuda {

using codegen::Kernel;
using codegen::Loop;

namespace {

constexpr unsigned kRows = 128, kWarps = 8;
/// Shared memory of a block up to which it has a third stage: two of them share a multiprocessor.
constexpr unsigned kThreeStages = 64 * 1024;

/// What rows of values threads share evenly, and sums of them stay in registers.
bool fits(std::int64_t elements, DType dtype) {
  const std::int64_t most = dtype == DType::f32 ? 64 : 128;
  return elements >= 32 && elements <= most && std::has_single_bit(static_cast<std::uint64_t>(elements));
}

}  // namespace

unsigned AttentionTile::shared_bytes() const { return std::max(rows_bytes() + result.stages * stage_bytes(), result.sum_bytes()); }

std::string AttentionTile::text() const {
  return fmt::format("attention {} by {} diagonal {} hidden {}", scores.text(), result.text(), choices.diagonal ? fmt::format("{}", *choices.diagonal) : "none", choices.zeroes_hidden ? "zero" : "nan");
}

std::optional<AttentionTile> attention_tile(const Kernel& kernel, std::span<const std::int64_t> starts) {
  const auto* marked = dynamic_cast<const Attended*>(kernel.schedule.get());
  if (!marked || kernel.inner.size() != 2 || !has_fixed_sizes(kernel)) return {};
  const codegen::Operation &scored = kernel.operations[kernel.reductions[1].elements[0]], &weighted = kernel.operations[kernel.reductions[0].elements[0]];
  const codegen::OpId query = scored.args[0], key = scored.args[1], value = weighted.args[1], operands[] = {query, key, value};
  const auto in = [&](codegen::OpId id) { return codegen::loops_of(kernel.operations, id); };
  const auto in_query = in(query), in_key = in(key), in_value = in(value), in_score = in(weighted.args[0]);
  const Loop &along = kernel.inner[0], &depth = kernel.inner[1];
  if (in_query.contains(along.variable) || in_value.contains(depth.variable) || in_score.contains(depth.variable)) return {};
  std::vector<Loop> batch, rows, columns;
  for (const Loop& loop : kernel.outer) {
    const bool q = in_query.contains(loop.variable), k = in_key.contains(loop.variable), v = in_value.contains(loop.variable);
    if (v && !q && !k && !in_score.contains(loop.variable)) columns.push_back(loop);
    else if (q && !k && !v) rows.push_back(loop);
    else batch.push_back(loop);
  }
  if (rows.size() != 1 || columns.size() != 1 || columns[0].variable != kernel.outer.back().variable) return {};
  AttentionTile made;
  made.score = weighted.args[0], made.choices = marked->choices;
  ProductTile &scores = made.scores, &result = made.result;
  scores.dtype = result.dtype = multiplied_dtype(kernel, operands);
  scores.rounds = result.rounds = marked->choices.rounds && scores.dtype == DType::f32;
  scores.rows = result.rows = rows[0].extent.constant(), scores.columns = result.depth = along.extent.constant();
  scores.depth = depth.extent.constant(), result.columns = columns[0].extent.constant();
  if (!fits(scores.depth, scores.dtype) || !fits(result.columns, scores.dtype)) return {};
  const auto element = static_cast<unsigned>(size_of(scores.dtype)), at_once = scores.dtype == DType::f32 ? 32u : 64u;
  scores.block_rows = result.block_rows = kRows, scores.warps_down = result.warps_down = kWarps;
  scores.block_columns = at_once, result.block_bytes = at_once * element;
  scores.block_bytes = static_cast<unsigned>(scores.depth) * element, result.block_columns = static_cast<unsigned>(result.columns);
  scores.a = operand_of(kernel, query, depth, rows, scores.dtype, starts);
  scores.b = operand_of(kernel, key, depth, {along}, scores.dtype, starts);
  result.b = operand_of(kernel, value, along, columns, scores.dtype, starts, scores.dtype == DType::f32);
  result.b.in_pairs = scores.dtype == DType::f32;
  result.lanes = lanes_of_result(kernel, operands, starts);
  scores.batch = result.batch = std::move(batch);
  result.a.loops = std::move(rows);
  result.stages = 3;
  if (made.shared_bytes() > kThreeStages) result.stages = 2;
  return made;
}

bool is_faster_by_library(const AttentionTile& attention) {
  constexpr double kLargeHalf = 1u << 30, kLargeFloat = 64 * kLargeHalf;
  const ProductTile& scores = attention.scores;
  const double multiplications = static_cast<double>(scores.batches()) * static_cast<double>(scores.rows) * static_cast<double>(scores.columns) * static_cast<double>(scores.depth);
  return multiplications >= (scores.dtype == DType::f32 ? kLargeFloat : kLargeHalf);
}

}  // namespace tenon::cuda
