#include "core/ir/dim.h"

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
