// The reference evaluator against answers worked out by hand.
#include "core/ops/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.h"
#include "core/ops/build/expand.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/infer.h"
#include "core/ops/reference/sample.h"

using namespace tenon;
using namespace tenon::ops;
using ir::Dim;
using ir::Shape;

namespace {

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct dtype_of<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of<std::int64_t> {
  static constexpr DType value = DType::i64;
};

template <class T>
HostTensor tensor(std::vector<std::int64_t> shape, std::vector<T> values) {
  HostTensor t(dtype_of<T>::value, std::move(shape));
  std::copy(values.begin(), values.end(), t.as<T>());
  return t;
}

template <class T>
std::vector<T> list(const HostTensor& t) {
  return {t.as<T>(), t.as<T>() + t.element_count()};
}

/// Runs one op on tensors.
std::vector<HostTensor> run(std::string_view op, std::vector<const HostTensor*> inputs, ir::Attributes attributes = {},
                            std::vector<ir::Literal> literals = {}) {
  ir::Graph graph;
  std::vector<ir::ValueId> operands;
  std::vector<TensorView> views;
  for (const HostTensor* t : inputs) {
    operands.push_back(graph.add_input(ir::Type::tensor(t->dtype, Shape(t->shape.begin(), t->shape.end()))));
    views.push_back(t->view());
  }
  for (const ir::Literal& l : literals) operands.push_back(graph.add_literal(l));
  NodeBuilder builder(graph);
  for (ir::ValueId v : builder.call(op, operands, attributes)) graph.add_output({.value = v});
  return evaluate(graph, views);
}

}  // namespace

TEST_CASE("integers wrap and divide by zero to zero") {
  const auto a = tensor<std::int8_t>({4}, {127, -128, 7, -7}), b = tensor<std::int8_t>({4}, {1, -1, 0, 2});
  CHECK(list<std::int8_t>(run("add", {&a, &b})[0]) == std::vector<std::int8_t>{-128, 127, 7, -5});
  CHECK(list<std::int8_t>(run("floor_divide", {&a, &b})[0]) == std::vector<std::int8_t>{127, -128, 0, -4});
  CHECK(list<std::int8_t>(run("remainder", {&a, &b})[0]) == std::vector<std::int8_t>{0, 0, 0, 1});
  CHECK(list<std::int8_t>(run("fmod", {&a, &b})[0]) == std::vector<std::int8_t>{0, 0, 0, -1});
}

TEST_CASE("float to integer casts truncate; what is out of range is the machine's") {
  const auto x = tensor<float>({5}, {2.9f, -2.9f, NAN, 3e9f, -3e9f});
  CHECK(list<std::int32_t>(run("_to_copy", {&x}, {{"dtype", DType::i32}})[0]) ==
        std::vector<std::int32_t>{2, -2, INT32_MIN, INT32_MIN, INT32_MIN});
  CHECK(list<std::int64_t>(run("_to_copy", {&x}, {{"dtype", DType::i64}})[0]) ==
        std::vector<std::int64_t>{2, -2, INT64_MIN, 3000000000, -3000000000});
}

TEST_CASE("floor division follows Python, not floor of the quotient") {
  const auto a = tensor<double>({3}, {1.0, -1.0, 6.0}), b = tensor<double>({3}, {0.1, 0.1, -4.0});
  CHECK(list<double>(run("floor_divide", {&a, &b})[0]) == std::vector<double>{9, -10, -2});
  CHECK(list<double>(run("remainder", {&a, &b})[0])[2] == -2.0);
}

TEST_CASE("a long float32 sum is exact to rounding") {
  HostTensor x(DType::f32, {1, 100000});
  std::fill_n(x.as<float>(), 100000, 0.1f);
  CHECK(run("sum", {&x})[0].as<float>()[0] == static_cast<float>(static_cast<double>(0.1f) * 100000));
}

TEST_CASE("reductions of nothing give the identity, of one point the point") {
  const HostTensor empty(DType::f32, {0, 2});
  CHECK(list<float>(run("sum", {&empty}, {{"dim", std::vector<Dim>{0}}})[0]) == std::vector<float>{0, 0});
  CHECK(list<float>(run("prod", {&empty}, {{"dim", std::vector<Dim>{0}}})[0]) == std::vector<float>{1, 1});
  CHECK(std::isnan(run("mean", {&empty})[0].as<float>()[0]));
  const auto point = tensor<float>({}, {3});
  CHECK(run("argmax", {&point})[0].as<std::int64_t>()[0] == 0);
}

TEST_CASE("argmax takes the first of equals and the first nan, along and across lanes") {
  std::vector<float> row(1200, 1.0f);
  row[700] = row[900] = 5.0f;
  auto x = tensor<float>({1, 1200}, row);
  CHECK(run("argmax", {&x})[0].as<std::int64_t>()[0] == 700);
  x.as<float>()[1000] = x.as<float>()[1100] = NAN;
  CHECK(run("argmax", {&x})[0].as<std::int64_t>()[0] == 1000);
  HostTensor many(DType::f32, {64, 3});
  CHECK(list<std::int64_t>(run("argmin", {&many}, {{"dim", std::vector<Dim>{1}}})[0]) == std::vector<std::int64_t>(64, 0));
}

TEST_CASE("indices out of range fail and are named") {
  const auto x = tensor<float>({3}, {1, 2, 3});
  const auto bad = tensor<std::int64_t>({2}, {0, 3});
  try {
    run("index_select", {&x, &bad}, {{"dim", Dim(0)}});
    FAIL("no error");
  } catch (const Exception& e) {
    CHECK(e.code() == Code::invalid_argument);
    CHECK(std::string(e.what()) == "index 3 is out of bounds for dimension 0 with size 3");
  }
  const auto from_end = tensor<std::int64_t>({2}, {-1, -3});
  CHECK(list<float>(run("index", {&x, &from_end}, {{"dims", std::vector<Dim>{0}}})[0]) == std::vector<float>{3, 1});
  const auto source = tensor<float>({2}, {9, 9});
  CHECK_THROWS_AS(run("scatter", {&x, &bad, &source}, {{"dim", Dim(0)}}), Exception);
}

TEST_CASE("a checked divisor fails at a zero") {
  const auto good = tensor<std::int32_t>({2, 2}, {1, -2, 3, 4}), bad = tensor<std::int32_t>({2, 2}, {1, -2, 0, 4});
  CHECK(list<std::int32_t>(run("nonzero_divisor", {&good})[0]) == std::vector<std::int32_t>{1, -2, 3, 4});
  CHECK_THROWS_AS(run("nonzero_divisor", {&bad}), Exception);
}

TEST_CASE("strided, reversed and repeated inputs are read where their strides say") {
  const auto memory = tensor<float>({6}, {0, 1, 2, 3, 4, 5});
  ir::Graph graph;
  ir::Type type = ir::Type::tensor(DType::f32, {2, 2});
  type.strides = Shape{-3, 2};
  NodeBuilder builder(graph);
  const auto x = graph.add_input(type);
  graph.add_output({.value = builder.one("add", {x, builder.literal(Dim(10))})});
  const TensorView view{const_cast<float*>(memory.as<float>()) + 3, DType::f32, {2, 2}, {-3, 2}};
  CHECK(list<float>(evaluate(graph, std::array{view})[0]) == std::vector<float>{13, 15, 10, 12});
}

TEST_CASE("symbols are bound by inputs, and by nodes whose size depends on data") {
  ir::Graph graph;
  const Dim n = Dim::symbol(graph.add_symbol({.name = "n"}));
  const auto x = graph.add_input(ir::Type::tensor(DType::f32, {n}));
  NodeBuilder b(graph);
  const auto positive = b.one("nonzero", {b.one("gt", {x, b.literal(Dim(0))})});
  const auto places = b.one("select", {positive}, {{"dim", Dim(1)}, {"index", Dim(0)}});
  const auto chosen = b.one("index_select", {x, places}, {{"dim", Dim(0)}});
  graph.add_output({.value = b.one("mul", {chosen, b.literal(2.0)})});
  graph.add_output({.value = b.one("add", {x, b.literal(n)})});
  const auto input = tensor<float>({4}, {-1, 2, -3, 4});
  const auto results = evaluate(graph, std::array{input.view()});
  CHECK(list<float>(results[0]) == std::vector<float>{4, 8});
  CHECK(list<float>(results[1]) == std::vector<float>{3, 6, 1, 8});
  const auto wrong = tensor<float>({2, 2}, {1, 2, 3, 4});
  CHECK_THROWS_AS(evaluate(graph, std::array{wrong.view()}), Exception);
}

TEST_CASE("symbolic scans, pads and reshapes agree with constant ones") {
  for (const bool symbolic : {false, true}) {
    ir::Graph graph;
    const Dim n = symbolic ? Dim::symbol(graph.add_symbol({.name = "n", .min = 1})) : Dim(5);
    const auto x = graph.add_input(ir::Type::tensor(DType::f32, {2, n}));
    NodeBuilder b(graph);
    const auto total = b.one("cumsum", {x}, {{"dim", Dim(1)}});
    const auto padded =
        b.one("pad", {total}, {{"after", std::vector<Dim>{0, 1}}, {"before", std::vector<Dim>{0, 2}}, {"mode", std::string("reflect")}});
    graph.add_output({.value = b.one("reshape", {padded}, {{"shape", std::vector<Dim>{-1}}})});
    const auto input = tensor<float>({2, 5}, {1, 2, 3, 4, 5, 1, 1, 1, 1, 1});
    CHECK(list<float>(evaluate(graph, std::array{input.view()})[0]) ==
          std::vector<float>{6, 3, 1, 3, 6, 10, 15, 10, 3, 2, 1, 2, 3, 4, 5, 4});
  }
}

TEST_CASE("results of half dtypes are rounded once, to nearest even") {
  const auto x = tensor<float>({4}, {2049.0f, 2051.0f, 65519.0f, 65520.0f});
  const auto halves = run("_to_copy", {&x}, {{"dtype", DType::f16}});
  CHECK(list<float>(run("_to_copy", {&halves[0]}, {{"dtype", DType::f32}})[0]) == std::vector<float>{2048, 2052, 65504, INFINITY});
  HostTensor ones(DType::f16, {3000});
  std::fill_n(ones.as<std::uint16_t>(), 3000, std::uint16_t{0x3c00});
  const auto sum = run("sum", {&ones});  // added one by one in float16 it would stop at 2048
  CHECK(list<float>(run("_to_copy", {&sum[0]}, {{"dtype", DType::f32}})[0]) == std::vector<float>{3000});
}

TEST_CASE("composites and bodies as nodes give what the op gives") {
  for (const Op& op : all_ops()) {
    if (!op.body && !op.decompose) continue;
    for (const Sample& sample : samples_of(op)) {
      INFO(op.name << " / " << sample.name);
      ir::Graph graph = sample_graph(op, sample);
      const auto inputs = sample_inputs(sample, 7);
      std::vector<TensorView> views;
      for (const SampleInput& i : inputs) views.push_back(i.view);
      const auto want = evaluate(graph, views);
      const NodeId node = graph.nodes().back();
      REQUIRE(expand_node(graph, node));
      for (NodeId id : graph.nodes()) CHECK((op.body || graph.node(id).op != op.name));
      const auto got = evaluate(graph, views);
      REQUIRE(got.size() == want.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        const auto difference = first_difference(got[k].view(), want[k].view(), sample.tolerance);
        INFO(difference.value_or(""));
        CHECK_FALSE(difference);
      }
    }
  }
}
