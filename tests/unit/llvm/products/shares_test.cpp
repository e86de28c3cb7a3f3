// Pieces of work are done once each, whichever threads come.
#include "products/shares.h"

#include <thread>

#include "catch.h"

using tenon::llvm_backend::Shares;

TEST_CASE("every piece is taken once", "[shares]") {
  for (const std::int64_t threads : {1, 2, 5})
    for (const auto& [large, small] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {1, 0}, {3, 40}, {97, 11}}) {
      std::vector<std::atomic<int>> taken(static_cast<std::size_t>(large + small));
      Shares shares(large, small, threads);
      std::vector<std::thread> running;
      for (std::int64_t t = 0; t < threads; ++t)
        running.emplace_back([&, t, first = large] {
          shares.take(t, [&](std::int64_t n) { ++taken[static_cast<std::size_t>(n)]; }, [&](std::int64_t n) { ++taken[static_cast<std::size_t>(first + n)]; });
        });
      for (std::thread& t : running) t.join();
      for (const auto& count : taken) CHECK(count == 1);
    }
}

TEST_CASE("a thread that comes alone does what was meant for the others, and the small pieces last", "[shares]") {
  Shares shares(5, 2, 3);
  std::vector<std::int64_t> order;
  shares.take(1, [&](std::int64_t n) { order.push_back(n); }, [&](std::int64_t n) { order.push_back(100 + n); });
  CHECK(order == std::vector<std::int64_t>{1, 2, 3, 4, 0, 100, 101});
}
