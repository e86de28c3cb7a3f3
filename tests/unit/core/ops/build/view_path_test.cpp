// Writes through views: what the view shows of the whole is what was written, and nothing else has changed.
#include "core/ops/build/view_path.h"

#include <numeric>

#include "catch.h"
#include "core/ops/reference/reference.h"

using namespace tenon;
using namespace tenon::ops;
using ir::Dim;

namespace {

struct Step {
  const char* op;
  ir::Attributes attributes;
  std::uint32_t result = 0;
};

HostTensor numbered(std::vector<std::int64_t> shape, double first) {
  HostTensor t(DType::f64, std::move(shape));
  std::iota(t.as<double>(), t.as<double>() + t.element_count(), first);
  return t;
}

std::vector<double> list(const HostTensor& t) { return {t.as<double>(), t.as<double>() + t.element_count()}; }

std::vector<std::int64_t> constants(const ir::Shape& shape) {
  std::vector<std::int64_t> sizes;
  for (const Dim& d : shape) sizes.push_back(d.constant());
  return sizes;
}

/// Writes -1, -2, … through the steps into the numbers 0, 1, … of a tensor of shape 4 × 3 × 2, and compares with a write to the places that
/// the view of these numbers shows.
void check_write(const std::vector<Step>& steps) {
  ir::Graph graph;
  NodeBuilder builder(graph);
  const ir::ValueId whole = graph.add_input(ir::Type::tensor(DType::f64, {4, 3, 2}));
  std::vector<ir::ValueId> stages = {whole};
  for (const Step& step : steps) stages.push_back(builder.call(step.op, {stages.back()}, step.attributes)[step.result]);
  const ir::ValueId part = graph.add_input(graph.type(stages.back()));

  const auto path = find_view_path(graph, whole, stages.back());
  REQUIRE(path);
  REQUIRE(path->size() == steps.size());
  ir::ValueId written = part;
  for (std::size_t i = path->size(); i-- > 0;) {
    const auto outer = scattered(builder, (*path)[i], stages[i], written);
    REQUIRE(outer);
    written = *outer;
  }
  graph.add_output({.value = written});
  graph.add_output({.value = stages.back()});

  const HostTensor before = numbered({4, 3, 2}, 0);
  HostTensor given = numbered(constants(graph.type(part).shape), 1);
  for (std::int64_t i = 0; i < given.element_count(); ++i) given.as<double>()[i] *= -1;
  const auto after = evaluate(graph, std::vector<TensorView>{before.view(), given.view()});

  std::vector<double> expected = list(before);
  const std::vector<double> places = list(after[1]);
  for (std::size_t i = 0; i < places.size(); ++i) expected[static_cast<std::size_t>(places[i])] = given.as<double>()[i];
  CHECK(list(after[0]) == expected);
}

const Step kReshape{"reshape", {{"shape", ir::Shape{6, 4}}}};
const Step kPermute{"permute", {{"dims", std::vector<Dim>{Dim(2), Dim(0), Dim(1)}}}};
const Step kFlip{"flip", {{"dims", std::vector<Dim>{Dim(0)}}}};
const Step kSelect{"select", {{"dim", Dim(1)}, {"index", Dim(2)}}};
const Step kSlice{"slice", {{"dim", Dim(0)}, {"end", Dim(4)}, {"start", Dim(1)}, {"step", Dim(2)}}};
const Step kUnbind{"unbind", {{"dim", Dim(1)}}, 1};
const Step kDiagonal{"diagonal", {{"dim1", Dim(0)}, {"dim2", Dim(1)}, {"offset", Dim(-1)}}};

}  // namespace

TEST_CASE("a write goes back through a view of each kind") {
  for (const Step& step : {kReshape, kPermute, kFlip, kSelect, kSlice, kUnbind, kDiagonal}) {
    INFO(step.op);
    check_write({step});
  }
}

TEST_CASE("a write goes back through views of views") {
  check_write({kReshape, kSlice});
  check_write({kPermute, kSelect, kFlip});
  check_write({kUnbind, kDiagonal});
  check_write({kSlice, kPermute, kUnbind});
}

TEST_CASE("a broadcast is written where it shows no element twice") {
  ir::Graph graph;
  NodeBuilder builder(graph);
  const ir::ValueId row = graph.add_input(ir::Type::tensor(DType::f64, {1, 3}));
  const ir::ValueId once = builder.one("expand", {row}, {{"size", ir::Shape{1, 1, 3}}}), twice = builder.one("expand", {row}, {{"size", ir::Shape{2, 3}}});
  const ir::ValueId a = graph.add_input(graph.type(once)), b = graph.add_input(graph.type(twice));
  CHECK(scattered(builder, find_view_path(graph, row, once)->front(), row, a));
  CHECK_FALSE(scattered(builder, find_view_path(graph, row, twice)->front(), row, b));
}

TEST_CASE("there is no path through a node of several operands") {
  ir::Graph graph;
  NodeBuilder builder(graph);
  const ir::ValueId x = graph.add_input(ir::Type::tensor(DType::f64, {3}));
  CHECK_FALSE(find_view_path(graph, x, builder.one("add", {x, x})));
  CHECK(find_view_path(graph, x, x)->empty());
}
