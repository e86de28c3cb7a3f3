#include "core/memory/arena_plan.h"

#include <random>

#include "catch.h"

using namespace tenon;

namespace {

bool overlap(const ArenaRequest& a, std::size_t at_a, const ArenaRequest& b, std::size_t at_b) {
  const bool together = a.first_step <= b.last_step && b.first_step <= a.last_step;
  return together && at_a < at_b + b.bytes && at_b < at_a + a.bytes;
}

}  // namespace

TEST_CASE("values of a chain share two places", "[arena]") {
  std::vector<ArenaRequest> chain;
  for (std::uint32_t i = 0; i < 10; ++i) chain.push_back({1024, i, i + 1});
  CHECK(plan_arena(chain).bytes == 2048);
  CHECK(arena_lower_bound(chain) == 2048);
}

TEST_CASE("offsets are aligned, never overlap, and stay near the lower bound", "[arena]") {
  const unsigned seed = 20261121;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::size_t planned = 0, bound = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<ArenaRequest> requests;
    for (int i = 0; i < 40; ++i) {
      const std::uint32_t first = random() % 50;
      requests.push_back({random() % 5000, first, first + static_cast<std::uint32_t>(random() % 10)});
    }
    const ArenaPlan plan = plan_arena(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      REQUIRE(plan.offsets[i] % kArenaAlignment == 0);
      REQUIRE(plan.offsets[i] + requests[i].bytes <= plan.bytes);
      for (std::size_t j = 0; j < i; ++j) REQUIRE_FALSE(overlap(requests[i], plan.offsets[i], requests[j], plan.offsets[j]));
    }
    REQUIRE(plan.bytes >= arena_lower_bound(requests));
    planned += plan.bytes;
    bound += arena_lower_bound(requests);
  }
  CHECK(static_cast<double>(planned) < 1.15 * static_cast<double>(bound));
}
