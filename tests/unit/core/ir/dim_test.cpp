#include "core/ir/dim.h"

#include <algorithm>
#include <optional>
#include <random>

#include "catch.h"
#include "core/base/error.h"

using tenon::SymbolId;
using tenon::ir::Dim;

namespace {

std::string text(const Dim& d) {
  return d.to_string([](SymbolId s) { return "s" + std::to_string(s.value); });
}

const Dim a = Dim::symbol(SymbolId(0)), b = Dim::symbol(SymbolId(1));

}  // namespace

TEST_CASE("equal polynomials are equal") {
  CHECK((a + 1) * (a - 1) == a * a - 1);
  CHECK(a + b == b + a);
  CHECK(a - a == Dim(0));
  CHECK_FALSE(a == b);
  CHECK((a * 2 + 4).hash() == (Dim(4) + a + a).hash());
}

TEST_CASE("division folds what divides") {
  CHECK(floor_div(a * 6 + 3, 3) == a * 2 + 1);
  CHECK(mod(a * 6, 3) == Dim(0));
  CHECK(text(floor_div(a, 2)) == "floor_div(s0, 2)");
  CHECK(floor_div(Dim(-7), 2) == Dim(-4));
  CHECK(mod(Dim(-7), 2) == Dim(1));
  CHECK_THROWS_AS(floor_div(a, 0), tenon::Exception);
}

TEST_CASE("expressions evaluate and print") {
  const std::int64_t values[] = {5, 7};
  const Dim d = a * b * 2 - floor_div(a + 1, 4) + max(a, b) - 3;
  CHECK(d.evaluate(values) == 70 - 1 + 7 - 3);
  CHECK(text(a * 2 - b + 1) == "s0*2 - s1 + 1");
  CHECK(d.substitute([](SymbolId s) { return Dim(s.value == 0 ? 5 : 7); }) == Dim(73));
}

TEST_CASE("overflow is an error, not a wrong size") {
  const std::int64_t values[] = {INT64_MAX, 2};
  CHECK_THROWS_AS((a * b).evaluate(values), tenon::Exception);
}

TEST_CASE("quotients and remainders are split by what divides") {
  CHECK(text(floor_div(a + 5, 4)) == "floor_div(s0 + 1, 4) + 1");
  CHECK(floor_div(a - 1, 2) + 1 == floor_div(a + 1, 2));
  CHECK(floor_div(a * 4 + b, 4) == a + floor_div(b, 4));
  CHECK(floor_div(floor_div(a, 2), 3) == floor_div(a, 6));
  CHECK(mod(a * 5 + 6, 4) == mod(a + 2, 4));
  CHECK(floor_div(a * b * 6, b * 2) == a * 3);
  CHECK(floor_div(a * b + b, b) == a + 1);
  CHECK(floor_div(a + b, a + b) == Dim(1));
  CHECK(mod(a * b, b) == Dim(0));
  CHECK(floor_div(a, -1) == -a);
  CHECK(text(floor_div(a, -2)) == "floor_div(s0, -2)");
}

TEST_CASE("minimum and maximum of expressions that differ by a constant are one of them") {
  CHECK(min(a + 1, a) == a);
  CHECK(max(a + 1, a) == a + 1);
  CHECK(min(a, b) == min(b, a));
  CHECK(min(Dim(INT64_MIN), Dim(INT64_MAX)) == Dim(INT64_MIN));
  CHECK(text(min(a + INT64_MIN, a + INT64_MAX)) == "min(s0 + -9223372036854775808, s0 + 9223372036854775807)");
}

TEST_CASE("an expression that would grow without bound is refused") {
  Dim d = a + b;
  CHECK_THROWS_AS([&] { for (int i = 0; i < 20; ++i) d = d * (d + a * b); }(), tenon::Exception);
  Dim nested = a;
  CHECK_THROWS_AS([&] { for (int i = 0; i < 40; ++i) nested = floor_div(nested, b) + mod(nested, 7); }(), tenon::Exception);
  Dim power = a;
  CHECK_THROWS_AS([&] { for (int i = 0; i < 12; ++i) power = power * power; }(), tenon::Exception);
}

TEST_CASE("sizes that differ only in how they were written are equal, and hash so") {
  CHECK(product(std::vector<Dim>{a, 3, b}) == b * a * 3);
  CHECK((b * a).hash() == (a * b).hash());
  CHECK(tenon::ir::row_major_strides(std::vector<Dim>{a, 0, b, 2}) == tenon::ir::Shape{b * 2, b * 2, 2, 1});
}

namespace {

/// A value and an expression that were computed by the same steps.
struct Pair {
  Dim dim;
  std::int64_t value;
};

std::int64_t floor_quotient(std::int64_t x, std::int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); }

std::optional<Pair> step(std::mt19937_64& random, const Pair& x, const Pair& y) {
  if (std::abs(x.value) > 1000000 || std::abs(y.value) > 1000000) return std::nullopt;
  switch (random() % 7) {
    case 0: return Pair{x.dim + y.dim, x.value + y.value};
    case 1: return Pair{x.dim - y.dim, x.value - y.value};
    case 2: return Pair{x.dim * y.dim, x.value * y.value};
    case 3: return Pair{min(x.dim, y.dim), std::min(x.value, y.value)};
    case 4: return Pair{max(x.dim, y.dim), std::max(x.value, y.value)};
    default:
      if (y.value == 0 || y.dim == Dim(0)) return std::nullopt;
      if (random() % 2) return Pair{floor_div(x.dim, y.dim), floor_quotient(x.value, y.value)};
      return Pair{mod(x.dim, y.dim), x.value - y.value * floor_quotient(x.value, y.value)};
  }
}

}  // namespace

TEST_CASE("an expression has the value that its steps have") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    const std::int64_t symbols[] = {static_cast<std::int64_t>(random() % 13) - 4, static_cast<std::int64_t>(random() % 9) + 1};
    std::vector<Pair> pool{{a, symbols[0]}, {b, symbols[1]}};
    for (std::int64_t c : {1, 2, 3, 4, -2, 12}) pool.push_back({c, c});
    for (int i = 0; i < 12; ++i) {
      try {
        if (auto next = step(random, pool[random() % pool.size()], pool[random() % pool.size()])) pool.push_back(*next);
      } catch (const tenon::Exception&) {  // too large
      }
    }
    for (const Pair& p : pool) {
      INFO("seed " << seed << ": " << text(p.dim) << " at " << symbols[0] << ", " << symbols[1]);
      REQUIRE(p.dim.evaluate(symbols) == p.value);
      REQUIRE(p.dim.substitute([](SymbolId s) { return Dim::symbol(s); }) == p.dim);
      REQUIRE(p.dim.substitute([&](SymbolId s) { return Dim(symbols[s.value]); }) == Dim(p.value));
    }
  }
}
