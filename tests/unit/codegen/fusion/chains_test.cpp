// Attention: products that share blocks of rows with the kernel between them. Masks, shared heads, head sizes beside the vector's.
#include <algorithm>
#include <limits>
#include <random>

#include "catch.h"
#include "core/ops/build/node_builder.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

enum class Mask { none, causal, bools, numbers };

struct Case {
  std::int64_t batch, heads, shared, queries, keys, size;
  Mask mask = Mask::none;
  bool heads_last = false;  // in memory positions come before heads
};

std::string text(const Case& c) {
  return fmt::format("{} x {} heads ({} of keys), {} queries, {} keys, size {}, mask {}, heads last {}", c.batch, c.heads, c.shared, c.queries, c.keys, c.size,
                     static_cast<int>(c.mask), c.heads_last);
}

struct Attention {
  ir::Graph graph;
  std::vector<ops::HostTensor> tensors;

  ValueId input(DType dtype, const std::vector<std::int64_t>& shape) {
    const auto fill = tensors.size() < 2 ? ops::Fill::unit : ops::Fill::normal;
    tensors.push_back(llvm_test::random_tensor(dtype, shape, 11 + tensors.size(), fill));
    return graph.add_input(ir::Type::tensor(dtype, ir::Shape(shape.begin(), shape.end())));
  }

  ValueId rows(const Case& c, DType dtype, std::int64_t heads, std::int64_t length) {
    ops::NodeBuilder b(graph);
    ValueId x = input(dtype, c.heads_last ? std::vector{c.batch, length, heads, c.size} : std::vector{c.batch, heads, length, c.size});
    if (c.heads_last) x = b.one("permute", {x}, {{"dims", std::vector<ir::Dim>{0, 2, 1, 3}}});
    if (heads == c.heads) return x;
    const auto wide = [&](std::int64_t each) { return std::vector<ir::Dim>{c.batch, heads, each, length, c.size}; };
    x = b.one("reshape", {x}, {{"shape", wide(1)}});
    x = b.one("expand", {x}, {{"size", wide(c.heads / heads)}});
    return b.one("reshape", {x}, {{"shape", std::vector<ir::Dim>{c.batch, c.heads, length, c.size}}});
  }

  Attention(const Case& c, DType dtype) {
    std::vector<ValueId> operands{rows(c, dtype, c.heads, c.queries), rows(c, dtype, c.shared, c.keys), rows(c, dtype, c.shared, c.keys)};
    if (c.mask == Mask::bools) operands.push_back(input(DType::b8, {c.queries, c.keys}));
    if (c.mask == Mask::numbers) operands.push_back(input(dtype, {c.batch, 1, c.queries, c.keys}));
    ops::NodeBuilder b(graph);
    graph.add_output({b.one("scaled_dot_product_attention", operands, {{"is_causal", c.mask == Mask::causal}, {"scale", 0.3}}), ir::OutputKind::result, {}});
  }

  std::string difference(const llvm_test::Choice& choice) {
    std::vector<ops::TensorView> views;
    for (auto& t : tensors) views.push_back(t.view());
    return llvm_test::difference(graph, views, choice, 60).value_or("");
  }

  std::ptrdiff_t chains() const {
    const auto program = llvm_test::compile(graph, {});
    const auto& steps = program->plan().steps;
    return std::count_if(steps.begin(), steps.end(), [](const codegen::Step& s) { return std::holds_alternative<codegen::ChainStep>(s); });
  }
};

}  // namespace

TEST_CASE("attention between convolutions keeps its rows", "[chains]") {
  Attention attention(Case{1, 2, 2, 60, 60, 24}, DType::f32);
  ir::Graph& graph = attention.graph;
  ops::NodeBuilder b(graph);
  const ValueId attended = graph.outputs()[0].value, weight = attention.input(DType::f32, {32, 48, 3, 3});
  const ValueId picture = b.one("reshape", {attended}, {{"shape", std::vector<ir::Dim>{1, 48, 6, 10}}});
  const std::vector<ir::Dim> ones{1, 1};
  const ir::Attributes around{{"after", ones}, {"before", ones}, {"dilation", ones}, {"groups", ir::Dim(1)}, {"stride", ones}};
  graph.add_output({b.one("conv_sum", {picture, weight}, around), ir::OutputKind::result, {}});
  CHECK(attention.chains() == 1);
  CHECK(attention.difference({}) == "");
}

TEST_CASE("attention runs a block of rows at a time", "[chains]") {
  for (const Mask mask : {Mask::none, Mask::causal, Mask::bools, Mask::numbers})
    for (const auto& c : {Case{2, 3, 3, 70, 70, 32, mask}, Case{1, 4, 2, 55, 55, 20, mask, true}, Case{2, 6, 1, 49, 49, 65, mask}}) {
      INFO(text(c));
      Attention attention(c, DType::f32);
      CHECK(attention.chains() == 1);
      for (const unsigned width : {0u, 32u, 16u}) CHECK(attention.difference({.width = width}) == "");
      CHECK(attention.difference({.threads = 3}) == "");
    }
}

TEST_CASE("causal attention leaves out the columns that a block of rows does not see", "[chains]") {
  for (const Mask mask : {Mask::causal, Mask::bools}) {
    Attention attention({1, 2, 2, 200, 200, 24, mask}, DType::f32);
    const auto program = llvm_test::compile(attention.graph, {});
    bool sees = false;
    for (std::size_t s = 0; s < program->plan().steps.size(); ++s) sees = sees || (program->chain(s) && program->chain(s)->seen);
    CHECK(sees == (mask == Mask::causal));
    CHECK(attention.difference({}) == "");
  }
}

TEST_CASE("attention of one query, of many keys, in float64", "[chains]") {
  for (const auto& c : {Case{1, 4, 4, 1, 300, 64}, Case{1, 2, 2, 3, 3000, 40, Mask::numbers}, Case{3, 2, 2, 130, 33, 8, Mask::bools, true}})
    for (const DType dtype : {DType::f32, DType::f64}) {
      INFO(text(c) << ", " << name_of(dtype));
      Attention attention(c, dtype);
      CHECK(attention.chains() == 1);
      CHECK(attention.difference({}) == "");
      CHECK(attention.difference({.threads = 2}) == "");
    }
}

TEST_CASE("attention over many keys takes softmax apart, a block of keys at a time", "[chains]") {
  for (const auto& c : {Case{1, 1, 1, 250, 1100, 40}, Case{1, 2, 1, 300, 300, 64, Mask::causal}, Case{1, 1, 1, 1050, 1050, 24, Mask::causal}, Case{2, 1, 1, 60, 1024, 70, Mask::bools, true},
                        Case{1, 1, 1, 7, 513, 16, Mask::numbers}})
    for (const unsigned width : {0u, 32u}) {
      INFO(text(c) << ", width " << width);
      Attention attention(c, DType::f32);
      const auto program = llvm_test::compile(attention.graph, {.width = width});
      std::size_t by_blocks = 0;
      for (std::size_t s = 0; s < program->plan().steps.size(); ++s) by_blocks += program->chain(s) && program->chain(s)->by_blocks;
      CHECK(by_blocks == 1);
      CHECK(attention.difference({.width = width, .threads = 2}) == "");
    }
}

TEST_CASE("rows that see no key, or none of the first ones", "[chains]") {
  constexpr std::int64_t queries = 50, keys = 1100;
  Attention attention({1, 1, 1, queries, keys, 16, Mask::bools}, DType::f32);
  auto* shown = static_cast<bool*>(attention.tensors.back().view().data);
  std::fill_n(shown, keys, false);
  std::fill_n(shown + keys, 700, false);
  std::fill_n(shown + 2 * keys + 512, keys - 512, false);
  CHECK(attention.difference({}) == "");
}

TEST_CASE("scores that are infinite or not numbers", "[chains]") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float score : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()})
    for (const std::int64_t keys : {20, 1100}) {
      Attention attention({1, 1, 1, 5, keys, 16, Mask::numbers}, DType::f32);
      static_cast<float*>(attention.tensors.back().view().data)[2 * keys + keys - 3] = score;
      INFO(score << ", " << keys << " keys");
      CHECK(attention.difference({}) == "");
    }
}

TEST_CASE("attention whose weights are an output keeps them in memory", "[chains]") {
  Attention attention({2, 3, 3, 60, 60, 32}, DType::f32);
  ops::NodeBuilder b(attention.graph);
  const auto inputs = attention.graph.inputs();
  const ValueId query = inputs[0], key = b.one("permute", {inputs[1]}, {{"dims", std::vector<ir::Dim>{0, 1, 3, 2}}});
  const ValueId weights = b.one("softmax", {b.one("matmul", {query, key})}, {{"dim", ir::Dim(3)}});
  ir::Graph& graph = attention.graph;
  graph.add_output({weights, ir::OutputKind::result, {}});
  graph.add_output({b.one("matmul", {weights, inputs[2]}), ir::OutputKind::result, {}});
  CHECK(attention.chains() == 1);
  CHECK(attention.difference({}) == "");
}

TEST_CASE("random attention", "[chains]") {
  const auto seed = static_cast<unsigned>(std::random_device{}());
  std::mt19937 random(seed);
  auto draw = [&](std::int64_t low, std::int64_t high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  for (int i = 0; i < 40; ++i) {
    const std::int64_t shared = draw(1, 3), keys = draw(1, 150);
    const Case c{draw(1, 3), shared * draw(1, 3), shared, draw(1, 100), keys, draw(1, 80), static_cast<Mask>(draw(0, 3)), draw(0, 1) == 1};
    INFO("seed " << seed << ": " << text(c));
    CHECK(Attention(c, DType::f32).difference({.width = draw(0, 1) ? 0u : 32u, .threads = static_cast<int>(draw(1, 2))}) == "");
  }
}
