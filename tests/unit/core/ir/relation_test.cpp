#include "core/ir/relation.h"

#include <climits>

#include "catch.h"

using namespace tenon;
using ir::Relation;
using Operator = ir::Relation::Operator;

TEST_CASE("relations compare the values of their symbols") {
  const ir::Dim a = ir::Dim::symbol(SymbolId(0)), b = ir::Dim::symbol(SymbolId(1));
  const std::int64_t values[] = {6, -3};
  CHECK(Relation{Operator::equal, a, b + ir::Dim(9)}.holds(values));
  CHECK(!Relation{Operator::equal, a, b}.holds(values));
  CHECK(Relation{Operator::not_equal, a, b}.holds(values));
  CHECK(Relation{Operator::less, b, a}.holds(values));
  CHECK(!Relation{Operator::less, a, a}.holds(values));
  CHECK(Relation{Operator::less_equal, a, a}.holds(values));
  CHECK(Relation{Operator::multiple_of, a, b}.holds(values));
  CHECK(!Relation{Operator::multiple_of, b, a}.holds(values));
}

TEST_CASE("what cannot be computed does not hold") {
  const ir::Dim a = ir::Dim::symbol(SymbolId(0)), b = ir::Dim::symbol(SymbolId(1));
  const std::int64_t values[] = {INT64_MAX, 0};
  CHECK(!Relation{Operator::not_equal, a + a, b}.holds(values));
  CHECK(!Relation{Operator::multiple_of, a, b}.holds(values));
  const std::int64_t least[] = {INT64_MIN, -1};
  CHECK(Relation{Operator::multiple_of, a, b}.holds(least));
}

TEST_CASE("expressions that divide by constants are compared case by case") {
  using ir::Dim;
  const Dim a = Dim::symbol(SymbolId(0)), b = Dim::symbol(SymbolId(1));
  CHECK(ir::are_always_equal(floor_div(a + Dim(1), Dim(2)) + floor_div(a, Dim(2)), a));
  CHECK(ir::are_always_equal(floor_div(a - Dim(1), Dim(2)) + Dim(1) + floor_div(a, Dim(2)), a));
  CHECK(ir::are_always_equal(Dim(3) * floor_div(a, Dim(3)) + mod(a, Dim(3)) + b, a + b));
  CHECK(ir::are_always_equal(floor_div(floor_div(a, Dim(2)) + floor_div(a + Dim(1), Dim(2)), Dim(5)), floor_div(a, Dim(5))));
  CHECK(ir::are_always_equal(a, a));
  CHECK(!ir::are_always_equal(a, b));
  CHECK(!ir::are_always_equal(floor_div(a, Dim(2)) + floor_div(a, Dim(2)), a));
  CHECK(!ir::are_always_equal(floor_div(a, Dim(2)), floor_div(a + Dim(1), Dim(2))));
  CHECK(!ir::are_always_equal(floor_div(a, b), floor_div(a, b) + mod(a, b)));
  CHECK(!ir::are_always_equal(floor_div(a, Dim(999)) + floor_div(a + Dim(1), Dim(2)), a));
}
