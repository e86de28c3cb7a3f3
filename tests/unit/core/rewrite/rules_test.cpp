#include "core/rewrite/rules.h"

#include "catch.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "core/rewrite/op_properties.h"

using namespace tenon;
using namespace tenon::rewrite;

namespace {

ir::Graph parsed(const std::string& nodes, const std::string& result) {
  return ir::parse_graph("graph @main (%x: f32[4], %y: f32[4]) {\n" + nodes + "  return " + result + "\n}\n").value();
}

std::string printed_without(const ir::Graph& graph, const Rule& rule, std::size_t expected_applications) {
  ir::Graph copy = graph.clone();
  CHECK(apply_rules(copy, {&rule, 1}) == expected_applications);
  return ir::print_graph(copy);
}

const auto first = [](Match& m) -> std::optional<ValueId> { return m[0]; };

}  // namespace

TEST_CASE("an exchange of operands is tried again when what comes after it does not fit") {
  const Rule rule{"add_sub", op("sub", {op("add", {any(0), any(1)}).commuted(), any(1)}), first};
  const ir::Graph graph = parsed("  %a: f32[4] = add(%y, %x)\n  %b: f32[4] = sub(%a, %y)\n", "%b");
  CHECK(printed_without(graph, rule, 1) == ir::print_graph(parsed("", "%x")));
}

TEST_CASE("a slot that occurs twice wants one value, or equal literals") {
  const Rule rule{"same", op("maximum", {any(0), any(0)}), first};
  CHECK(printed_without(parsed("  %a: f32[4] = maximum(%x, %x)\n", "%a"), rule, 1) == ir::print_graph(parsed("", "%x")));
  const ir::Graph different = parsed("  %a: f32[4] = maximum(%x, %y)\n", "%a");
  CHECK(printed_without(different, rule, 0) == ir::print_graph(different));
}

TEST_CASE("zero and minus zero are different numbers") {
  const Rule rule{"minus_zero", op("add", {any(0), number(-0.0)}), first};
  const ir::Graph plus = parsed("  %a: f32[4] = add(%x, 0.0)\n", "%a");
  CHECK(printed_without(plus, rule, 0) == ir::print_graph(plus));
  CHECK(printed_without(parsed("  %a: f32[4] = add(%x, -0.0)\n", "%a"), rule, 1) == ir::print_graph(parsed("", "%x")));
}

TEST_CASE("a replacement of another type is not used") {
  const Rule rule{"first", op("add", {any(0), any(1)}), [](Match& m) -> std::optional<ValueId> { return m[1]; }};
  const ir::Graph graph = ir::parse_graph("graph @main (%x: f32[4], %y: f32[1]) {\n  %a: f32[4] = add(%x, %y)\n  return %a\n}\n").value();
  CHECK(printed_without(graph, rule, 0) == ir::print_graph(graph));
}

TEST_CASE("what may raise stays when a rule takes its reader away, and goes when a rule replaces it") {
  const std::string nodes = "  %i: i64[4] = cast(%y) {dtype = i64}\n  %a: f32[4] = index_select(%x, %i) {dim = 0}\n  %b: f32[4] = sub(%a, %a)\n";
  const Rule difference{"difference", op("sub", {any(0), any(0)}), [](Match& m) -> std::optional<ValueId> { return m.rewriter().graph().inputs()[0]; }};
  ir::Graph graph = parsed(nodes, "%b");
  CHECK(apply_rules(graph, {&difference, 1}) == 1);
  CHECK(ir::print_graph(graph).find("index_select") != std::string::npos);
  graph = parsed(nodes, "%b");
  Rewriter rewriter(graph);
  rewriter.replace(graph.node(*std::next(graph.nodes().begin())).results[0], graph.inputs()[0]);
  rewriter.finish();
  CHECK(ir::print_graph(graph).find("index_select") == std::string::npos);
}

TEST_CASE("rules that undo each other are found out") {
  const Rule rule{"restless", op("neg", {any(0)}), [](Match& m) -> std::optional<ValueId> { return m.make("neg", {m[0]}); }};
  ir::Graph graph = parsed("  %a: f32[4] = neg(%x)\n", "%a");
  CHECK_THROWS_AS(apply_rules(graph, {&rule, 1}), Exception);
}

TEST_CASE("that operands may be exchanged follows from the body") {
  const auto node_commutes = [](const std::string& op, const std::string& dtype) {
    const ir::Graph graph = parsed("  %a: " + dtype + "[4] = " + op + "(%x, %y)\n", "%a");
    return commutes(graph, graph.node(graph.nodes()[0]));
  };
  for (const char* op : {"add", "mul", "maximum", "minimum"}) CHECK(node_commutes(op, "f32"));
  for (const char* op : {"eq", "ne"}) CHECK(node_commutes(op, "bool"));
  for (const char* op : {"sub", "div", "pow", "atan2"}) CHECK_FALSE(node_commutes(op, "f32"));
  for (const char* op : {"lt", "ge"}) CHECK_FALSE(node_commutes(op, "bool"));
}
