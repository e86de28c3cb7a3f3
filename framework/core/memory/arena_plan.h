// Places the intermediates of a plan in one block of memory, so that values that are never alive together share bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon {

/// Memory wanted from the first to the last step that touch it, both included.
struct ArenaRequest {
  std::size_t bytes = 0;
  std::uint32_t first_step = 0;
  std::uint32_t last_step = 0;
};

struct ArenaPlan {
  std::vector<std::size_t> offsets;  // one a request, multiples of 64
  std::size_t bytes = 0;             // of the whole block
};

inline constexpr std::size_t kArenaAlignment = 64;

/// Assigns offsets: the largest request first, each to the tightest gap among those alive with it ("greedy by size" of
/// Pisarchyk and Lee, https://arxiv.org/abs/2001.03288).
ArenaPlan plan_arena(std::span<const ArenaRequest> requests);

/// Bytes that must be there at the busiest step: no plan needs less.
std::size_t arena_lower_bound(std::span<const ArenaRequest> requests);

}  // namespace tenon
