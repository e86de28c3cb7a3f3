#include "core/guards/tree.h"

#include <map>

#include "catch.h"
#include "core/base/error.h"

using namespace tenon;
using namespace tenon::guards;

namespace {

/// Answers a walk from a table of values by path, and counts what it is asked.
struct Call {
  const SourceTable& sources;
  std::map<std::string, Fact> values;
  std::vector<std::string> asked = {};

  bool fetch(SourceId s) {
    asked.push_back(sources.describe(s));
    return values.count(sources.describe(s)) != 0;
  }

  bool holds(const Check& check) {
    asked.push_back("? " + describe(sources, check));
    if (check.kind == CheckKind::relation) {
      std::vector<std::int64_t> symbols;
      for (SourceId s : check.others) symbols.push_back(std::get<std::int64_t>(values.at(sources.describe(s)).value));
      return check.relation->holds(symbols);
    }
    if (check.kind == CheckKind::same_object) return values.at(sources.describe(check.source)) == values.at(sources.describe(check.others[0]));
    return values.at(sources.describe(check.source)) == check.expected;
  }
};

struct Paths {
  explicit Paths(SourceTable& s) : x(s.root(SourceKind::argument, 0)), y(s.root(SourceKind::argument, 1)), scale(s.part(SourceKind::attribute, x, "scale")) {
    s.name_arguments({"x", "y"});
  }
  SourceId x, y, scale;
};

Check equals(SourceId source, Fact value) { return {CheckKind::constant, source, std::move(value), {}, {}}; }

}  // namespace

TEST_CASE("entries share paths and checks") {
  GuardTree tree;
  const Paths p(tree.sources());
  const EntryId a = tree.add({equals(p.x, 1), equals(p.scale, 2)}), b = tree.add({equals(p.x, 1), equals(p.scale, 3)});
  const auto program = tree.program();
  CHECK(program.size() == 5);  // x, x == 1, x.scale, x.scale == 2, x.scale == 3

  Call call{tree.sources(), {{"x", 1}, {"x.scale", 3}}};
  MatchResult result = match(tree, program, call);
  CHECK(result.possible == (EntryMask{1} << b.value));
  REQUIRE(result.failures.size() == 1);
  CHECK(describe(tree.sources(), tree.check(result.failures[0])) == "x.scale == 2");
  CHECK(call.asked == std::vector<std::string>{"x", "? x == 1", "x.scale", "? x.scale == 2", "? x.scale == 3"});

  Call other{tree.sources(), {{"x", 7}, {"x.scale", 3}}};
  CHECK(match(tree, program, other).possible == 0);
  CHECK(other.asked == std::vector<std::string>{"x", "? x == 1"});
  CHECK(tree.checks_of(a).size() == 2);
}

TEST_CASE("the check that failed last comes first, after those that make it safe") {
  GuardTree tree;
  const Paths p(tree.sources());
  const SourceId width = tree.sources().part(SourceKind::attribute, p.y, "width");
  tree.add({{CheckKind::type, p.y, ObjectKey{7, "<Net>"}, {}, {}}, equals(p.x, 1), equals(p.y, 5), equals(p.y, 6), equals(width, 3)});
  const auto order = [&] {
    std::vector<std::string> list;
    for (const Step& s : tree.program()) list.push_back(s.kind == Step::Kind::fetch ? tree.sources().describe(s.source) : "? " + describe(tree.sources(), tree.check(s.check)));
    return list;
  };
  REQUIRE(order() == std::vector<std::string>{"y", "? type(y) is <Net>", "? y == 5", "? y == 6", "y.width", "? y.width == 3", "x", "? x == 1"});
  for (const Step& s : tree.program())
    if (s.kind == Step::Kind::check && tree.check(s.check) == equals(p.x, 1)) tree.failed(s.check);
  CHECK(order().front() == "x");
  for (const Step& s : tree.program())
    if (s.kind == Step::Kind::check && tree.check(s.check) == equals(p.y, 6)) tree.failed(s.check);
  CHECK(order() == std::vector<std::string>{"y", "? type(y) is <Net>", "? y == 6", "? y == 5", "y.width", "? y.width == 3", "x", "? x == 1"});
}

TEST_CASE("a source that is gone rules out only the entries that need it") {
  GuardTree tree;
  const Paths p(tree.sources());
  tree.add({equals(p.scale, 2)});
  const EntryId without = tree.add({equals(p.y, 4)});
  Call call{tree.sources(), {{"x", 1}, {"y", 4}}};
  const MatchResult result = match(tree, tree.program(), call);
  CHECK(result.possible == (EntryMask{1} << without.value));
  CHECK(result.missing == std::vector<SourceId>{p.scale});
}

TEST_CASE("checks over several sources come last") {
  GuardTree tree;
  const Paths p(tree.sources());
  tree.add({{CheckKind::same_object, p.x, {}, {p.y}, {}}, equals(p.x, 1)});
  Call call{tree.sources(), {{"x", 1}, {"y", 1}}};
  CHECK(match(tree, tree.program(), call).possible == 1);
  CHECK(call.asked.back() == "? x is y");
  Call differ{tree.sources(), {{"x", 1}, {"y", 2}}};
  CHECK(match(tree, tree.program(), differ).possible == 0);
}

TEST_CASE("symbolic relations are checked and told") {
  GuardTree tree;
  const Paths p(tree.sources());
  const ir::Dim s = ir::Dim::symbol(SymbolId(0)), t = ir::Dim::symbol(SymbolId(1));
  tree.add({{CheckKind::relation, {}, {}, {p.x, p.y}, Relation{Relation::Operator::equal, s * 2, t + 1}}});
  Call good{tree.sources(), {{"x", 3}, {"y", 5}}}, bad{tree.sources(), {{"x", 3}, {"y", 6}}};
  CHECK(match(tree, tree.program(), good).possible == 1);
  const MatchResult result = match(tree, tree.program(), bad);
  REQUIRE(result.failures.size() == 1);
  CHECK(explain(tree.sources(), tree.check(result.failures[0]), {}) == "x*2 == y + 1 no longer holds");
  const std::int64_t large[] = {INT64_MAX, 1};
  CHECK_FALSE(Relation{Relation::Operator::less, s * 2, t}.holds(large));
  CHECK_FALSE(Relation{Relation::Operator::multiple_of, s, 0}.holds(large));
}

TEST_CASE("a removed entry leaves nothing behind") {
  GuardTree tree;
  const Paths p(tree.sources());
  const EntryId a = tree.add({equals(p.x, 1), equals(p.scale, 2)});
  tree.add({equals(p.x, 1)});
  tree.remove(a);
  CHECK(tree.program().size() == 2);
  CHECK(tree.add({equals(p.y, 9)}) == a);
  CHECK(tree.program().size() == 4);
  Call call{tree.sources(), {{"x", 1}, {"y", 9}}};
  CHECK(match(tree, tree.program(), call).possible == 3);
}

TEST_CASE("a full tree says so") {
  GuardTree tree;
  const Paths p(tree.sources());
  for (std::size_t i = 0; i < kMaxEntries; ++i) tree.add({equals(p.x, static_cast<int>(i))});
  CHECK_THROWS_AS(tree.add({equals(p.x, 99)}), Exception);
  Call call{tree.sources(), {{"x", 63}}};
  CHECK(match(tree, tree.program(), call).possible == EntryMask{1} << 63);
}
