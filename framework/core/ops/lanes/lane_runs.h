// Lanes along one dimension that lie side by side: what runs along them is computed for many of them at once, in vectors.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/ops/op.h"

namespace tenon::ops {

/// Lanes at even steps in each of N tensors of one shape.
template <std::size_t N>
struct LaneRun {
  std::array<std::int64_t, N> first;   // element where the first lane begins
  std::array<std::int64_t, N> across;  // elements from lane to lane
  std::int64_t lanes = 1;
};

/// Calls `visit(run)` until every lane along `dim` has been in one run. Compiled once an N, not once a kernel.
template <std::size_t N>
void each_lane_run(const std::array<const TensorView*, N>& tensors, std::size_t dim, const std::function<void(const LaneRun<N>&)>& visit) {
  struct Side {
    std::int64_t size;
    std::array<std::int64_t, N> strides;
  };
  std::vector<Side> sides;
  const TensorView& x = *tensors[0];
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    if (x.shape[d] == 0) return;
    if (d == dim || x.shape[d] == 1) continue;
    Side side{x.shape[d], {}};
    for (std::size_t t = 0; t < N; ++t) side.strides[t] = tensors[t]->strides[d];
    sides.push_back(side);
  }
  std::ranges::stable_sort(sides, std::ranges::greater(), [](const Side& s) { return std::abs(s.strides[0]); });
  for (std::size_t i = sides.size(); i-- > 1;) {  // what steps as one dimension
    const Side &outer = sides[i - 1], &inner = sides[i];
    bool one = true;
    for (std::size_t t = 0; t < N; ++t) one = one && outer.strides[t] == inner.strides[t] * inner.size;
    if (!one) continue;
    sides[i].size *= outer.size;
    sides.erase(sides.begin() + static_cast<std::ptrdiff_t>(i) - 1);
  }
  LaneRun<N> run{};
  if (!sides.empty()) {
    run.lanes = sides.back().size, run.across = sides.back().strides;
    sides.pop_back();
  }
  std::vector<std::int64_t> at(sides.size(), 0);
  for (;;) {
    visit(run);
    std::size_t s = sides.size();
    for (; s > 0; --s) {
      const Side& side = sides[s - 1];
      for (std::size_t t = 0; t < N; ++t) run.first[t] += side.strides[t];
      if (++at[s - 1] < side.size) break;
      for (std::size_t t = 0; t < N; ++t) run.first[t] -= side.strides[t] * side.size;
      at[s - 1] = 0;
    }
    if (s == 0) return;
  }
}

/// Lanes whose states are kept together: in memory where lanes are neighbours, so that they are computed in vectors, else in registers.
inline constexpr std::int64_t kNeighbours = 512, kApart = 8;

/// Calls `neighbours(first, lanes)` for blocks of lanes that are neighbours in all tensors, else `apart(first, width)` for blocks of
/// `width` lanes, a constant: kApart or 1.
template <std::size_t N, class Neighbours, class Apart>
void each_block(const LaneRun<N>& run, Neighbours neighbours, Apart apart) {
  const auto start = [&](std::int64_t lane) {
    auto first = run.first;
    for (std::size_t t = 0; t < N; ++t) first[t] += lane * run.across[t];
    return first;
  };
  const bool together = run.lanes > 1 && std::ranges::all_of(run.across, [](std::int64_t step) { return step == 1; });
  std::int64_t lane = 0;
  for (; together && lane < run.lanes; lane += kNeighbours) neighbours(start(lane), std::min(kNeighbours, run.lanes - lane));
  for (; lane + kApart <= run.lanes; lane += kApart) apart(start(lane), std::integral_constant<std::int64_t, kApart>());
  for (; lane < run.lanes; ++lane) apart(start(lane), std::integral_constant<std::int64_t, 1>());
}

/// Calls `body(i)` for each i below `width`, a constant, in straight-line code.
template <std::int64_t width, class Body>
[[gnu::always_inline]] inline void unrolled(std::integral_constant<std::int64_t, width>, Body body) {
  [&]<std::size_t... i>(std::index_sequence<i...>) [[gnu::always_inline]] { (body(i), ...); }(std::make_index_sequence<width>());
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
template <class Body>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512"), gnu::optimize("O3"), gnu::noinline]] void with_avx512(Body body) { body(); }
template <class Body>
[[gnu::target("avx2"), gnu::optimize("O3"), gnu::noinline]] void with_avx2(Body body) { body(); }
template <class Body>
[[gnu::optimize("O3"), gnu::noinline]] void with_baseline(Body body) { body(); }

/// Calls `body()`, which must be inlined always, compiled for the widest vectors that the machine has.
template <class Body>
void for_machine(Body body) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  static const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  has_avx512 ? with_avx512(body) : has_avx2 ? with_avx2(body) : with_baseline(body);
}
#else
template <class Body>
void for_machine(Body body) { body(); }
#endif

}  // namespace tenon::ops
