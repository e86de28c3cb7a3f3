#include "core/memory/arena_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tenon {
namespace {

std::size_t aligned(std::size_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

bool alive_together(const ArenaRequest& a, const ArenaRequest& b) { return a.first_step <= b.last_step && b.first_step <= a.last_step; }

struct Placed {
  std::size_t offset, end;
  const ArenaRequest* request;
};

/// The start of the tightest gap of at least `bytes` between the placed requests that are alive with `request`; `placed` is
/// sorted by offset.
std::size_t tightest_gap(const std::vector<Placed>& placed, const ArenaRequest& request, std::size_t bytes) {
  std::size_t best = std::numeric_limits<std::size_t>::max();
  std::size_t best_gap = std::numeric_limits<std::size_t>::max();
  std::size_t end = 0;  // of everything seen so far that is alive with it
  for (const Placed& p : placed) {
    if (!alive_together(*p.request, request)) continue;
    if (p.offset > end && p.offset - end >= bytes && p.offset - end < best_gap) {
      best = end;
      best_gap = p.offset - end;
    }
    end = std::max(end, p.end);
  }
  return best_gap == std::numeric_limits<std::size_t>::max() ? end : best;
}

}  // namespace

ArenaPlan plan_arena(std::span<const ArenaRequest> requests) {
  ArenaPlan plan;
  plan.offsets.resize(requests.size(), 0);
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return requests[a].bytes > requests[b].bytes; });

  std::vector<Placed> placed;
  placed.reserve(requests.size());
  for (std::size_t i : order) {
    const std::size_t bytes = aligned(requests[i].bytes);
    if (bytes == 0) continue;
    const std::size_t offset = tightest_gap(placed, requests[i], bytes);
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    const auto position = std::upper_bound(placed.begin(), placed.end(), offset, [](std::size_t at, const Placed& p) { return at < p.offset; });
    placed.insert(position, {offset, offset + bytes, &requests[i]});
  }
  return plan;
}

std::size_t arena_lower_bound(std::span<const ArenaRequest> requests) {
  std::vector<std::pair<std::uint32_t, std::int64_t>> changes;
  for (const ArenaRequest& r : requests) {
    changes.emplace_back(r.first_step, static_cast<std::int64_t>(aligned(r.bytes)));
    changes.emplace_back(r.last_step + 1, -static_cast<std::int64_t>(aligned(r.bytes)));
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t alive = 0, most = 0;
  for (const auto& [step, bytes] : changes) most = std::max(most, alive += bytes);
  return static_cast<std::size_t>(most);
}

}  // namespace tenon
