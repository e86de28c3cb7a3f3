// The loop nests that backends lower: their indices are as simple as the shapes allow.
#include "core/ops/loop_body.h"

#include <algorithm>

#include "catch.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"

using namespace tenon;
using namespace tenon::ops;
using ir::Dim;

namespace {

LoopBody loop(ir::Graph& graph, std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes = {}) {
  NodeBuilder(graph).call(op, std::move(operands), std::move(attributes));
  return *loop_of(graph, graph.nodes().back());
}

std::size_t count(const ScalarProgram& p, Primitive op) {
  return static_cast<std::size_t>(std::ranges::count_if(p.instructions, [&](const Instruction& i) { return i.op == op; }));
}

}  // namespace

TEST_CASE("a reshape that splits or merges dimensions divides only what is split") {
  ir::Graph graph;
  const Dim s = Dim::symbol(graph.add_symbol({.name = "s0"}));
  const auto x = graph.add_input(ir::Type::tensor(DType::f32, {s, 6, 5}));
  const auto merged = loop(graph, "reshape", {x}, {{"shape", std::vector<Dim>{s, 30}}});
  CHECK(count(merged.element, Primitive::floor_div) == 1);
  CHECK(count(merged.element, Primitive::remainder) == 1);
  const auto split = loop(graph, "reshape", {x}, {{"shape", std::vector<Dim>{s, 2, 3, 5}}});
  CHECK(count(split.element, Primitive::floor_div) == 0);
  CHECK(count(split.element, Primitive::mul) == 1);
  const auto ones = loop(graph, "reshape", {x}, {{"shape", std::vector<Dim>{1, s, 1, 6, 5}}});
  CHECK(count(ones.element, Primitive::mul) + count(ones.element, Primitive::floor_div) == 0);
}

TEST_CASE("broadcast dimensions are loaded at index 0, half floats as float32") {
  ir::Graph graph;
  const auto x = graph.add_input(ir::Type::tensor(DType::f16, {4, 1})), y = graph.add_input(ir::Type::tensor(DType::f16, {3}));
  const auto body = loop(graph, "add", {x, y});
  CHECK(body.extents == std::vector<Dim>{4, 3});
  CHECK(body.reduced == 0);
  for (const Instruction& i : body.element.instructions)
    if (i.op == Primitive::load) CHECK(i.dtype == DType::f32);
  CHECK(count(body.element, Primitive::load) == 2);
}

TEST_CASE("a choice between literals has the dtype of the result") {
  ir::Graph graph;
  const auto condition = graph.add_input(ir::Type::tensor(DType::b8, {4}));
  NodeBuilder builder(graph);
  const auto body = loop(graph, "where", {condition, builder.literal(0.0), builder.literal(1.0)});
  const DType result = graph.type(graph.node(graph.nodes().back()).results[0]).dtype;
  CHECK(is_float(result));
  CHECK(body.element.instructions[body.element.results[0]].dtype == result);
}

TEST_CASE("a product is a reduction of products with one reduced loop") {
  ir::Graph graph;
  const auto x = graph.add_input(ir::Type::tensor(DType::f32, {4, 5})), y = graph.add_input(ir::Type::tensor(DType::f32, {5, 3}));
  const auto body = loop(graph, "mm", {x, y});
  CHECK(body.extents == std::vector<Dim>{4, 3, 5});
  CHECK(body.reduced == 1);
  REQUIRE(body.reducer);
  CHECK(body.reducer->accumulators == std::vector<DType>{DType::f32});
  CHECK(body.element.instructions.back().op == Primitive::mul);
}
