// What inference accepts and gives, with symbols, and what it says when operands do not fit.
#include "catch.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/infer.h"

using namespace tenon;
using namespace tenon::ops;
using ir::Dim;
using ir::Shape;

namespace {

struct Bench {
  ir::Graph graph;
  NodeBuilder builder{graph};

  Dim symbol(const char* name, std::int64_t min = 0, std::int64_t max = INT64_MAX) {
    return Dim::symbol(graph.add_symbol({.name = name, .min = min, .max = max}));
  }
  ir::ValueId input(DType t, Shape shape) { return graph.add_input(ir::Type::tensor(t, std::move(shape))); }
  ir::ValueId input(Shape shape) { return input(DType::f32, std::move(shape)); }
  const ir::Type& type(ir::ValueId v) { return graph.type(v); }
  std::string shape(ir::ValueId v) { return infer::text(graph, graph.type(v).shape); }
  std::pair<Code, std::string> failure(std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes = {}) {
    try {
      builder.call(op, std::move(operands), std::move(attributes));
    } catch (const Exception& e) {
      return {e.code(), e.what()};
    }
    return {Code::ok, ""};
  }
};

bool mentions(const std::string& text, std::initializer_list<std::string_view> words) {
  for (std::string_view w : words)
    if (text.find(w) == std::string::npos) return false;
  return true;
}

}  // namespace

TEST_CASE("symbolic dimensions broadcast when equal or one") {
  Bench b;
  const Dim s = b.symbol("s0", 2), t = b.symbol("s1", 2);
  const auto sum = b.builder.one("add", {b.input({s, 1}), b.input({s, t})});
  CHECK(b.shape(sum) == "[s0, s1]");
  const auto [code, text] = b.failure("add", {b.input({s}), b.input({t})});
  CHECK(code == Code::unsupported);
  CHECK(mentions(text, {"add", "s0", "s1"}));
  CHECK(b.failure("add", {b.input({3}), b.input({4})}).first == Code::invalid_argument);
  CHECK(b.failure("add", {b.input({s}), b.input({s + Dim(1)})}).first == Code::invalid_argument);
}

TEST_CASE("operands of a node have one dtype, and literals do not widen it") {
  Bench b;
  CHECK(mentions(b.failure("add", {b.input({2}), b.input(DType::f64, {2})}).second, {"f32", "f64", "_to_copy"}));
  CHECK(b.failure("add", {b.input(DType::i32, {2}), b.builder.literal(2.5)}).first == Code::invalid_argument);
  CHECK(b.type(b.builder.one("add", {b.input(DType::f16, {2}), b.builder.literal(2.5)})).dtype == DType::f16);
  CHECK(b.failure("sub", {b.input(DType::b8, {2}), b.input(DType::b8, {2})}).first == Code::invalid_argument);
  CHECK(b.type(b.builder.one("lt", {b.input({2}), b.builder.literal(Dim(1))})).dtype == DType::b8);
}

TEST_CASE("an unknown op and a missing attribute are named") {
  Bench b;
  CHECK(b.failure("no_such_op", {}).first == Code::not_found);
  const auto [code, text] = b.failure("softmax", {b.input({2, 3})});
  CHECK(code == Code::invalid_argument);
  CHECK(mentions(text, {"softmax", "dim"}));
}

TEST_CASE("reductions wrap, keep and drop dimensions") {
  Bench b;
  const Dim s = b.symbol("s0");
  const auto x = b.input({s, 3, 4});
  CHECK(b.shape(b.builder.one("sum", {x}, {{"dim", std::vector<Dim>{-1}}})) == "[s0, 3]");
  CHECK(b.shape(b.builder.one("sum", {x}, {{"dim", std::vector<Dim>{0, 2}}, {"keepdim", true}})) == "[1, 3, 1]");
  CHECK(b.shape(b.builder.one("amax", {x}, {})) == "[]");
  CHECK(b.type(b.builder.one("sum", {b.input(DType::i8, {3})}, {})).dtype == DType::i64);
  CHECK(mentions(b.failure("sum", {x}, {{"dim", std::vector<Dim>{3}}}).second, {"3", "-3", "2"}));
  CHECK(b.failure("sum", {x}, {{"dim", std::vector<Dim>{0, -3}}}).first == Code::invalid_argument);
  CHECK(b.failure("amax", {b.input({0, 2})}, {{"dim", std::vector<Dim>{0}}}).first == Code::invalid_argument);
  CHECK(b.shape(b.builder.one("amax", {b.input({0, 2})}, {{"dim", std::vector<Dim>{1}}})) == "[0]");
}

TEST_CASE("reshape completes one dimension, symbols too") {
  Bench b;
  const Dim s = b.symbol("s0", 1);
  const auto to = [&](ir::ValueId x, std::vector<Dim> shape) {
    return b.shape(b.builder.one("reshape", {x}, {{"shape", std::move(shape)}}));
  };
  CHECK(to(b.input({s, 4}), {Dim(-1)}) == "[s0*4]");
  CHECK(to(b.input({s, 4}), {s, 2, Dim(-1)}) == "[s0, 2, 2]");
  CHECK(to(b.input({s * Dim(4)}), {Dim(-1), 4}) == "[s0, 4]");
  CHECK(b.failure("reshape", {b.input({6})}, {{"shape", std::vector<Dim>{4}}}).first == Code::invalid_argument);
  CHECK(b.failure("reshape", {b.input({s})}, {{"shape", std::vector<Dim>{4}}}).first == Code::unsupported);
}

TEST_CASE("slices know what the ranges of symbols prove") {
  Bench b;
  const Dim s = b.symbol("s0", 4), small = b.symbol("s1");
  const auto slice = [&](ir::ValueId x, Dim start, Dim end, Dim step = 1) {
    return b.shape(b.builder.one("slice", {x}, {{"dim", Dim(0)}, {"end", end}, {"start", start}, {"step", step}}));
  };
  CHECK(slice(b.input({s}), 1, -1) == "[s0 - 2]");
  CHECK(slice(b.input({s}), 0, 3) == "[3]");
  CHECK(slice(b.input({small}), 0, 3) == "[min(3, s1)]");
  CHECK(slice(b.input({7}), -3, 100) == "[3]");
  CHECK(slice(b.input({7}), 1, 7, 3) == "[2]");
  CHECK(slice(b.input({7}), 5, 2) == "[0]");
}

TEST_CASE("the range of a sum goes by what its terms share") {
  Bench b;
  const Dim s = b.symbol("s0", 1, 8), t = b.symbol("s1", -14, 3), n = b.symbol("s2", 1);
  CHECK(infer::range(b.graph, s * Dim(16) + s * t).least == 2);  // s * (16 + t)
  CHECK(infer::range(b.graph, s * Dim(16) + s * t).most == 8 * 19);
  CHECK(infer::range(b.graph, Dim(2000) - n * floor_div(Dim(2000), n)).least == 0);  // what is left over
  CHECK(infer::range(b.graph, n * floor_div(Dim(2000), n)).most == 2000);
  CHECK(infer::range(b.graph, n - s * floor_div(n, s)).least == 0);
  CHECK(infer::range(b.graph, n - s * floor_div(n, s)).most == 7);
  CHECK(infer::range(b.graph, s * Dim(3) - floor_div(s * Dim(3) - Dim(6), Dim(2)) - Dim(2)).least >= 1);  // more than the half of it
  CHECK(infer::range(b.graph, s - floor_div(s, Dim(3)) * Dim(3)).most <= 2);
  Dim halved = n;
  for (int times = 0; times < 5; ++times) {  // as convolutions that step by two halve a picture
    const Dim half = floor_div(halved + Dim(1), Dim(2));
    CHECK(infer::range(b.graph, half * Dim(2) - halved).least == 0);
    CHECK(infer::range(b.graph, half * Dim(2) - halved).most == 1);
    halved = half;
  }
}

TEST_CASE("the range of a product goes by the range of each factor") {
  Bench b;
  const Dim i = b.symbol("i"), j = b.symbol("j"), h = b.symbol("h"), w = b.symbol("w");
  const Dim rows = max(i, min(Dim(64), i + h)) - i, columns = max(j, min(Dim(72), j + w)) - j;  // of a part of 64 x 72
  CHECK(infer::range(b.graph, rows * columns).least == 0);
  CHECK(infer::range(b.graph, rows * columns * Dim(3)).least == 0);
  CHECK(infer::range(b.graph, Dim(0) - rows * columns).most == 0);
  CHECK(infer::range(b.graph, (rows + Dim(1)) * (columns + Dim(2))).least >= 1);
  CHECK(infer::range(b.graph, (min(h, w) - w) * rows).most == 0);
  CHECK(infer::range(b.graph, (min(h, w) - i) * rows).least < 0);  // nothing is known of the first factor
}

TEST_CASE("products check inner dimensions, batches broadcast") {
  Bench b;
  const Dim s = b.symbol("s0"), t = b.symbol("s1");
  CHECK(b.shape(b.builder.one("mm", {b.input({s, 4}), b.input({4, t})})) == "[s0, s1]");
  CHECK(b.failure("mm", {b.input({2, 3}), b.input({4, 2})}).first == Code::invalid_argument);
  CHECK(b.failure("mm", {b.input({2, s}), b.input({t, 2})}).first == Code::unsupported);
  CHECK(b.shape(b.builder.one("matmul", {b.input({s, 1, 3, 4}), b.input({5, 4, 2})})) == "[s0, 5, 3, 2]");
  CHECK(b.shape(b.builder.one("matmul", {b.input({4}), b.input({4})})) == "[]");
  CHECK(b.shape(b.builder.one("linear", {b.input({s, 8}), b.input({5, 8}), b.input({5})})) == "[s0, 5]");
}

TEST_CASE("a size that depends on data is a new symbol of the graph") {
  Bench b;
  const Dim s = b.symbol("s0");
  const auto found = b.builder.one("nonzero", {b.input(DType::b8, {s, 3})});
  REQUIRE(b.graph.symbols().size() == 2);
  CHECK(b.type(found).shape[0].as_symbol() == SymbolId(1));
  const auto again = b.builder.one("nonzero", {b.input(DType::b8, {s, 3})});
  CHECK_FALSE(b.type(again).shape[0] == b.type(found).shape[0]);
}

TEST_CASE("advanced indices: adjacent ones stay in place, others move to the front") {
  Bench b;
  const auto x = b.input({4, 5, 6, 7});
  const auto i = b.input(DType::i64, {2, 1}), j = b.input(DType::i64, {3});
  CHECK(b.shape(b.builder.one("index", {x, i, j}, {{"dims", std::vector<Dim>{1, 2}}})) == "[4, 2, 3, 7]");
  CHECK(b.shape(b.builder.one("index", {x, i, j}, {{"dims", std::vector<Dim>{0, 2}}})) == "[2, 3, 5, 7]");
  CHECK(b.failure("index", {x, b.input({2})}, {{"dims", std::vector<Dim>{0}}}).first == Code::invalid_argument);
}
