#include "core/ir/verifier.h"

#include "catch.h"
#include "core/ir/parser.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

Graph sound() {
  return parse_graph(R"(graph @g [n] (%x: f32[n], %y: f32[n]) {
    const @c: f32[3]
    %a: f32[n] = neg(%x) @ "model.py":3 "forward" "-x"
    %b: f32[n] = cond(%a, 1.0) {k = 1} graph @then (%v: f32[n]) { %w: f32[n] = neg(%v) return %w }
    %c: f32[3] = constant() {index = @c}
    return %b, update %y = %a
  })").value();
}

/// The first violation after a change.
template <class Change>
std::string first(Change&& change) {
  Graph g = sound();
  change(g);
  const auto violations = find_violations(g);
  return violations.empty() ? "none" : violations[0].text;
}

template <class Change>
void change_type(Graph& g, ValueId v, Change&& change) {
  Type type = g.type(v);
  change(type);
  g.set_type(v, std::move(type));
}

ValueId result(const Graph& g, std::size_t node) { return g.node(g.nodes()[node]).results[0]; }

}  // namespace

TEST_CASE("each invariant is checked and named") {
  CHECK(first([](Graph&) {}) == "none");
  CHECK(first([](Graph& g) { g.mutable_node(g.nodes()[0]).operands[0] = ValueId(99u); }) == "node 0 (neg): operand 99 does not exist (1)");
  CHECK(first([](Graph& g) { g.mutable_value(result(g, 1)).type = TypeId(99u); }) == "node 1 (cond): result 0 does not exist (1)");
  CHECK(first([](Graph& g) { g.mutable_value(result(g, 1)).index = 1; }) == "node 1 (cond): result 0 (%b) does not belong to it (2)");
  CHECK(first([](Graph& g) { g.mutable_node(g.nodes()[0]).operands[0] = result(g, 1); }) == "node 0 (neg): operand %b is not defined before its use (3)");
  CHECK(first([](Graph& g) { g.mutable_value(result(g, 1)).name = "a"; }) == "two values are called %a (4)");
  CHECK(first([](Graph& g) { g.mutable_value(result(g, 0)).name = "1a"; }) == "'1a' is no name for a value (4)");
  CHECK(first([](Graph& g) { change_type(g, g.node(g.nodes()[1]).operands[1], [](Type& t) { t.dtype = DType::f32; }); }) == "node 1 (cond): a literal has another type than its number (4)");
  CHECK(first([](Graph& g) { change_type(g, result(g, 1), [](Type& t) { t.shape[0] = -1; }); }) == "%b: the dimension -1 is negative (5)");
  CHECK(first([](Graph& g) { g.set_strides(result(g, 1), Shape{1, 1}); }) == "%b: 2 strides for 1 dimensions (5)");
  CHECK(first([](Graph& g) { change_type(g, result(g, 1), [](Type& t) { t.shape[0] = Dim::symbol(SymbolId(4u)); }); }) == "%b: symbol 4 does not exist (5)");
  CHECK(first([](Graph& g) { g.mutable_node(g.nodes()[0]).op = "a b"; }) == "node 0 (a b): 'a b' is no name for an op (6)");
  CHECK(first([](Graph& g) { g.mutable_node(g.nodes()[1]).attributes.push_back({"a", true}); }) == "node 1 (cond): attribute 'a' is not in its place (6)");
  CHECK(first([](Graph& g) { g.mutable_symbol(SymbolId(0u)).min = 9, g.mutable_symbol(SymbolId(0u)).max = 8; }) == "the range 9..8 of symbol n is empty (7)");
  CHECK(first([](Graph& g) { g.mutable_symbol(SymbolId(0u)).name = "f32"; }) == "'f32' is no name for a symbol (7)");
  CHECK(first([](Graph& g) { std::get<Dim>(g.mutable_node(g.nodes()[2]).attributes[0].value) = 5; }) == "node 2 (constant): it does not name a constant (8)");
  CHECK(first([](Graph& g) { change_type(g, result(g, 2), [](Type& t) { t.dtype = DType::f64; }); }) == "node 2 (constant): its result has another type than the constant (8)");
  CHECK(first([](Graph& g) { g.mutable_node(g.nodes()[0]).regions = g.node(g.nodes()[1]).regions; }) == "node 1 (cond): region 0 does not exist, or belongs to another node too (9)");
  CHECK(first([](Graph& g) { g.mutable_region(g.node(g.nodes()[1]).regions[0]).add_symbol({}); }) == "node 1 (cond): a region has symbols or constants of its own (9)");
  CHECK(first([](Graph& g) { g.add_output({g.node(g.nodes()[1]).operands[1], OutputKind::result, {}}); }).find("is no input or result (10)") != std::string::npos);
  CHECK(first([](Graph& g) { g.add_output({result(g, 1), OutputKind::update, g.inputs()[1]}); }) == "%y has two updates (10)");
  CHECK(first([](Graph& g) { change_type(g, result(g, 0), [](Type& t) { t.dtype = DType::f64; }); }) == "%a of type f64[n] cannot update %y of type f32[n] (10)");
}

TEST_CASE("violations carry the user's line, and the outermost node") {
  Graph g = sound();
  g.mutable_node(g.nodes()[0]).operands[0] = ValueId(99u);
  const auto wrong = verify_graph(g);
  REQUIRE(wrong);
  CHECK(wrong->message == "graph @g is malformed:\n  node 0 (neg): operand 99 does not exist (1) (model.py:3)");
  Graph nested = sound();
  Graph& region = nested.mutable_region(nested.node(nested.nodes()[1]).regions[0]);
  region.mutable_node(region.nodes()[0]).operands[0] = ValueId(50u);
  CHECK(find_violations(nested).at(0).node == nested.nodes()[1]);
}

TEST_CASE("unused constants are dropped and the others renumbered") {
  Graph g = parse_graph(R"(graph @g () {
    const @a: f32[1]
    const @b: f32[2]
    const @c: f32[3]
    f() graph @r () { %v: f32[3] = constant() {index = @c} return %v }
    %w: f32[2] = constant() {index = @b}
    return %w })").value();
  CHECK(g.drop_unused_constants() == std::vector<ConstantId>{ConstantId(1u), ConstantId(2u)});
  CHECK(g.constants().size() == 2);
  CHECK_FALSE(verify_graph(g));
  CHECK(g.drop_unused_constants().size() == 2);
}
