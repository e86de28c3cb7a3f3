// Reductions: lanes, then vectors side by side, then blocks, so that a sum of n numbers has an error like a sum of few.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cmath>

#include "vectors/kernel_emitter_impl.h"

namespace tenon::llvm_backend {

using llvm::Value;

namespace {

/// Steps of an innermost loop that one set of accumulators takes before it is added to the next level.
constexpr std::int64_t kBlockSteps = 128;
/// Points of inner loops that get a sum of their own.
constexpr std::int64_t kLeastApart = 8;
/// The least and the most additions of one chain, where no lanes run over what is summed: nothing else shortens it. Where sizes are not
/// known it is the least one twice.
constexpr std::int64_t kLeastChain = 16, kMostChain = 128;

/// True when the order of a reduction decides how much is lost: of additions, not of extremes.
bool rounds(const Kernel& kernel, const Stage& stage) {
  using P = ops::Primitive;
  return std::ranges::any_of(stage.reductions, [&](auto r) {
    return std::ranges::any_of(kernel.reductions[r].reducer.combine.instructions,
                               [](const ops::Instruction& i) { return is_float(i.dtype) && (i.op == P::add || i.op == P::sub || i.op == P::mul || i.op == P::fma); });
  });
}

/// Iterations of a loop that form one chain, when each of them adds `points` elements to it: about as many as there are such chains.
std::int64_t chain_of(const Dim& extent, std::int64_t points) {
  const double root = extent.is_constant() ? std::sqrt(static_cast<double>(extent.constant() * points)) : 2 * kLeastChain;
  return std::max<std::int64_t>(1, std::clamp(static_cast<std::int64_t>(root), kLeastChain, kMostChain) / points);
}

}  // namespace

/// A loop over which no lanes run, in chains that are added up. Each iteration adds so many points to its chain.
KernelEmitter::Carried KernelEmitter::reduce_chains(const Stage& stage, const Loop& l, Carried carried, unsigned lanes, std::int64_t points, const CarriedBody& body) {
  Value* extent = scalar(l.extent);
  const std::int64_t chain = chain_of(l.extent, points);
  auto one = [&](Value* low, Value* high, Carried sums) {
    auto values = loop(low, high, 1, false, l.variable, std::move(sums), body);
    values.pop_back();
    return values;
  };
  const bool is_short = l.extent.is_constant() && l.extent.constant() <= 2 * chain;
  if (is_short || !rounds(kernel_, stage)) return one(ir_.getInt64(0), extent, std::move(carried));
  return plain_loop(ir_.getInt64(0), extent, chain, std::move(carried), [&](Value* start, Carried sums) {
    Value* end = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateAdd(start, ir_.getInt64(static_cast<std::uint64_t>(chain))), extent);
    return combined(stage, sums, one(start, end, initial(stage, true, lanes)));
  });
}

KernelEmitter::Carried KernelEmitter::reduce_lanes_range(const Stage& stage, const Loop& l, unsigned narrow) {
  const unsigned wide = wide_lanes(&stage);
  const std::int64_t block = wide * kBlockSteps;
  Value* extent = scalar(l.extent);
  auto vectors = [&](Value* low, Value* high) {
    auto values = loop(low, high, wide, true, l.variable, initial(stage, true, wide),
                       [&](Value*, Carried sums) { return combined(stage, sums, elements(stage)); });
    values.pop_back();
    return values;
  };
  Value* main_end = ir_.CreateAnd(extent, ir_.getInt64(~std::uint64_t{wide - 1}));
  Carried total;
  if (!fills_vectors(wide)) {
    total = initial(stage, true, narrow);
  } else if (l.extent.is_constant() && l.extent.constant() <= 2 * block) {
    total = vectors(ir_.getInt64(0), main_end);
  } else {
    total = plain_loop(ir_.getInt64(0), main_end, block, initial(stage, true, wide), [&](Value* start, Carried sums) {
      Value* end = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateAdd(start, ir_.getInt64(static_cast<std::uint64_t>(block))), main_end);
      const Carried part = vectors(start, end);
      b_.set_lanes(wide);
      return combined(stage, sums, part);
    });
  }
  if (fills_vectors(wide)) total = narrowed(stage, total, wide, narrow);
  return left_by_vectors(wide) == 0 ? total : reduce_tail(stage, l, main_end, std::move(total));
}

/// What whole vectors leave of a loop over lanes, one register at a time.
KernelEmitter::Carried KernelEmitter::reduce_tail(const Stage& stage, const Loop& l, Value* low, Carried total) {
  const unsigned narrow = target_.lanes();
  const bool whole = left_by_vectors(narrow) == 0;
  Value* extent = scalar(l.extent);
  b_.set_lanes(narrow);
  auto values = loop(low, extent, narrow, whole, l.variable, std::move(total), [&](Value* position, Carried sums) {
    Value* mask = whole ? nullptr : mask_of_tail(position, extent);
    tail_mask_ = mask;
    Carried next = combined(stage, sums, elements(stage));
    tail_mask_ = nullptr;
    for (std::size_t i = 0; mask && i < next.size(); ++i) next[i] = ir_.CreateSelect(mask, next[i], sums[i]);
    return next;
  });
  values.pop_back();
  return values;
}

/// Points of the loops from `number` on that are added to the sum of the loops around them; 1 when they are summed apart, because they are
/// long or because lanes do it: one sum over all would lose digits.
std::int64_t KernelEmitter::points_of_one_sum(std::size_t number) const {
  if (schedule_.lanes_inside) return 1;
  std::int64_t points = 1;
  for (; number < kernel_.inner.size(); ++number) {
    const Dim& extent = kernel_.inner[number].extent;
    if (!extent.is_constant()) return 1;
    points *= extent.constant();
  }
  return points >= kLeastApart ? 1 : std::max<std::int64_t>(1, points);
}

KernelEmitter::Carried KernelEmitter::reduce_inner(const Stage& stage, std::size_t number, Carried carried, unsigned lanes) {
  if (kernel_.inner.empty()) return combined(stage, carried, elements(stage));
  const Loop& l = kernel_.inner[number];
  if (number + 1 == kernel_.inner.size()) {
    if (!schedule_.lanes_inside) return reduce_chains(stage, l, std::move(carried), lanes, 1, [&](Value*, Carried sums) { return combined(stage, sums, elements(stage)); });
    Carried part = reduce_lanes_range(stage, l, lanes);
    return number == 0 ? part : combined(stage, carried, part);
  }
  const std::int64_t points = points_of_one_sum(number + 1);
  return reduce_chains(stage, l, std::move(carried), lanes, points, [&](Value*, Carried sums) {
    if (points > 1 || schedule_.lanes_inside) return reduce_inner(stage, number + 1, std::move(sums), lanes);
    return combined(stage, sums, reduce_inner(stage, number + 1, initial(stage, true, lanes), lanes));
  });
}

void KernelEmitter::reduce_stage(const Stage& stage) {
  const unsigned lanes = schedule_.lanes_inside ? target_.lanes() : b_.lanes();
  Carried values = reduce_inner(stage, 0, initial(stage, schedule_.has_lanes(kernel_), lanes), lanes);
  if (schedule_.lanes_inside) values = narrowed(stage, values, lanes, 1);
  else b_.set_lanes(lanes);
  finish_reductions(stage, values);
}

}  // namespace tenon::llvm_backend
