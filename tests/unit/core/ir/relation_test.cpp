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
