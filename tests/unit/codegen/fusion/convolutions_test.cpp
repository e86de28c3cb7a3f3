// Convolutions as matrix products over windows: shapes around the tiles, strides, padding, dilation, groups, epilogues, random ones.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "catch.h"
#include "core/ops/build/node_builder.h"
#include "decisions/cpu_machine.h"
#include "graph/layout.h"
#include "matrix/winograd.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

struct Convolution {
  std::int64_t images, channels, height, width, outputs, kernel_h, kernel_w;
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};

std::string text(const Convolution& c) {
  return fmt::format("{} x {} x {} x {} to {}, kernel {} x {}, stride {}, padding {}, dilation {}, groups {}", c.images, c.channels, c.height, c.width, c.outputs,
                     c.kernel_h, c.kernel_w, c.stride, c.padding, c.dilation, c.groups);
}

/// Per-channel scale and shift, a residual and relu after the convolution when `epilogue`.
std::string difference(const Convolution& c, DType dtype, bool epilogue, const llvm_test::Choice& choice, std::size_t* steps = nullptr) {
  ir::Graph graph;
  ops::NodeBuilder b(graph);
  auto input = [&](const std::vector<std::int64_t>& shape) { return graph.add_input(ir::Type::tensor(dtype, ir::Shape(shape.begin(), shape.end()))); };
  const std::vector<std::int64_t> shape_{c.images, c.channels, c.height, c.width}, w_shape{c.outputs, c.channels / c.groups, c.kernel_h, c.kernel_w};
  const ValueId x = input(shape_), w = input(w_shape);
  const std::vector<ir::Dim> stride{c.stride, c.stride}, padding{c.padding, c.padding}, dilation{c.dilation, c.dilation};
  ValueId y = b.one("conv_sum", {x, w}, {{"after", padding}, {"before", padding}, {"dilation", dilation}, {"groups", ir::Dim(c.groups)}, {"stride", stride}});
  std::vector<ops::HostTensor> tensors;
  tensors.push_back(llvm_test::random_tensor(dtype, shape_, 3, ops::Fill::unit));
  tensors.push_back(llvm_test::random_tensor(dtype, w_shape, 4, ops::Fill::unit));
  if (epilogue) {
    const std::vector<std::int64_t> channel{c.outputs, 1, 1};
    std::vector<std::int64_t> result;
    for (const ir::Dim& d : graph.type(y).shape) result.push_back(d.constant());
    const ValueId scale = input(channel), residual = input(result);
    tensors.push_back(llvm_test::random_tensor(dtype, channel, 5));
    tensors.push_back(llvm_test::random_tensor(dtype, result, 6));
    y = b.one("relu", {b.one("add", {b.one("mul", {y, scale}), residual})});
  }
  graph.add_output({y, ir::OutputKind::result, {}});
  std::vector<ops::TensorView> views;
  for (auto& t : tensors) views.push_back(t.view());
  if (steps) *steps = llvm_test::compile(graph, choice)->plan().steps.size();
  return llvm_test::difference(graph, views, choice, 60).value_or("");
}

}  // namespace

TEST_CASE("convolutions of many shapes", "[convolutions]") {
  const std::vector<Convolution> cases = {{2, 16, 20, 20, 24, 3, 3, 1, 1},      {1, 24, 17, 19, 13, 3, 3, 2, 1}, {3, 8, 30, 14, 16, 5, 3, 1, 2},     {5, 32, 4, 4, 40, 3, 3, 1, 1},
                                   {2, 32, 7, 7, 64, 1, 1},              {1, 3, 40, 40, 32, 7, 7, 2, 3},  {2, 12, 15, 15, 18, 3, 3, 1, 2, 2},  {2, 24, 12, 12, 36, 3, 3, 1, 1, 1, 3},
                                   {1, 16, 9, 70, 8, 1, 3, 1, 0},        {2, 48, 10, 10, 5, 2, 2, 2},     {1, 16, 64, 64, 16, 3, 3, 1, 1},
                                   {1, 520, 5, 6, 16, 1, 1, 2, 1}};
  for (const Convolution& c : cases)
    for (const unsigned width : {0u, 32u, 16u}) {
      INFO(text(c) << ", width " << width);
      std::size_t steps = 0;
      CHECK(difference(c, DType::f32, false, {.width = width}) == "");
      CHECK(difference(c, DType::f32, true, {.width = width}, &steps) == "");
      CHECK(steps <= 2);  // a copy with other strides, or padding, may come first
    }
}

TEST_CASE("convolutions in float64 and on threads", "[convolutions]") {
  for (const Convolution& c : {Convolution{2, 16, 20, 20, 24, 3, 3, 1, 1}, Convolution{1, 24, 17, 19, 13, 3, 3, 2, 1}, Convolution{9, 32, 4, 4, 40, 3, 3, 1, 1}}) {
    INFO(text(c));
    CHECK(difference(c, DType::f64, true, {}) == "");
    CHECK(difference(c, DType::f32, true, {.threads = 3}) == "");
  }
}

namespace {

/// The order of a sum over blocks of channels: each is a chain of fused multiply-adds over rows and columns of the window and the block's
/// channels; the chain goes on from block to block, or such chains are added up.
struct SumOrder {
  std::int64_t channels;
  bool goes_on;
};

float chained_sum(const Convolution& c, const SumOrder& order, const float* x, const float* w, std::int64_t image, std::int64_t output, std::int64_t row, std::int64_t column) {
  float sum = 0;
  for (std::int64_t first = 0; first < c.channels; first += order.channels) {
    float chain = order.goes_on ? sum : 0;
    for (std::int64_t kh = 0; kh < c.kernel_h; ++kh)
      for (std::int64_t kw = 0; kw < c.kernel_w; ++kw)
        for (std::int64_t channel = first; channel < std::min(first + order.channels, c.channels); ++channel) {
          const std::int64_t i = row * c.stride + kh - c.padding, j = column * c.stride + kw - c.padding;
          if (i < 0 || j < 0 || i >= c.height || j >= c.width) continue;
          chain = std::fma(x[((image * c.channels + channel) * c.height + i) * c.width + j], w[((output * c.channels + channel) * c.kernel_h + kh) * c.kernel_w + kw], chain);
        }
    sum = order.goes_on ? chain : sum + chain;
  }
  return sum;
}

}  // namespace

TEST_CASE("direct convolutions sum in the order of oneDNN's kernels for these vectors", "[convolutions]") {
  const unsigned width = GENERATE(0u, 32u);
  const llvm_backend::Target& target = llvm_backend::kernel_cache(width).target();
  if (!target.has_fma) return;
  for (const Convolution& c : {Convolution{2, 16, 9, 7, 40, 3, 3, 1, 1}, Convolution{3, 40, 11, 8, 20, 3, 3, 2, 1}, Convolution{2, 64, 6, 9, 72, 5, 3, 1, 2}}) {
    INFO(text(c) << ", width " << width);
    const bool whole_blocks = c.channels % 8 == 0 && c.outputs % 8 == 0;
    const SumOrder order = target.vector_bytes == 32 && whole_blocks ? SumOrder{8, true} : SumOrder{16, false};
    const std::vector<std::int64_t> x_shape{c.images, c.channels, c.height, c.width}, w_shape{c.outputs, c.channels, c.kernel_h, c.kernel_w};
    ops::HostTensor x = llvm_test::random_tensor(DType::f32, x_shape, 3), w = llvm_test::random_tensor(DType::f32, w_shape, 4);
    ir::Graph graph;
    auto input = [&](const std::vector<std::int64_t>& shape) { return graph.add_input(ir::Type::tensor(DType::f32, ir::Shape(shape.begin(), shape.end()))); };
    const ValueId picture = input(x_shape), weight = input(w_shape);
    const std::vector<ir::Dim> stride{c.stride, c.stride}, padding{c.padding, c.padding}, ones(2, ir::Dim(1));
    graph.add_output({ops::NodeBuilder(graph).one("conv_sum", {picture, weight}, {{"after", padding}, {"before", padding}, {"dilation", ones}, {"groups", ir::Dim(1)}, {"stride", stride}}),
                      ir::OutputKind::result, {}});
    const std::vector<ops::TensorView> views{x.view(), w.view()};
    const auto got = llvm_test::run(graph, views, {.width = width});
    const auto& shape = got[0].view().shape;
    const float* result = static_cast<const float*>(got[0].view().data);
    std::int64_t different = 0;
    for (std::int64_t i = 0; i < shape[0] * shape[1] * shape[2] * shape[3]; ++i) {
      const std::int64_t column = i % shape[3], row = i / shape[3] % shape[2], output = i / shape[3] / shape[2] % shape[1], image = i / shape[3] / shape[2] / shape[1];
      different += result[i] != chained_sum(c, order, static_cast<const float*>(x.data()), static_cast<const float*>(w.data()), image, output, row, column);
    }
    CHECK(different == 0);
  }
}

TEST_CASE("depthwise convolutions are loop nests", "[convolutions]") {
  CHECK(difference({2, 16, 20, 20, 16, 3, 3, 1, 1, 1, 16}, DType::f32, true, {}) == "");
}

namespace {

/// Compares so many drawn convolutions of up to `channels` channels with the judge.
void check_random_convolutions(unsigned seed, int count, std::int64_t channels) {
  std::mt19937 random(seed);
  auto draw = [&](std::int64_t low, std::int64_t high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  for (int i = 0; i < count; ++i) {
    Convolution c{draw(1, 4), draw(1, channels), draw(1, 24), draw(1, 24), draw(1, channels), draw(1, 4), draw(1, 4), draw(1, 3), draw(0, 3), draw(1, 2), 1};
    if (draw(0, 3) == 0) c.groups = draw(2, 3), c.channels *= c.groups, c.outputs *= c.groups;
    const std::int64_t reach_h = (c.kernel_h - 1) * c.dilation + 1, reach_w = (c.kernel_w - 1) * c.dilation + 1;
    if (c.height + 2 * c.padding < reach_h || c.width + 2 * c.padding < reach_w) continue;
    INFO("seed " << seed << ": " << text(c));
    CHECK(difference(c, DType::f32, draw(0, 1) == 1, {.width = draw(0, 1) ? 0u : 32u, .threads = static_cast<int>(draw(1, 2))}) == "");
  }
}

}  // namespace

TEST_CASE("random convolutions", "[convolutions]") { check_random_convolutions(std::random_device{}(), 60, 24); }
/// Takes minutes: test_llvm "[thousands]".
TEST_CASE("thousands of random convolutions", "[.thousands]") { check_random_convolutions(1, 3000, 80); }

namespace {

/// Convolutions one after the other, with relu and a pooling between them: what lies between has channels last.
struct Chain {
  ir::Graph graph;
  std::vector<ops::HostTensor> tensors;
  ValueId last;

  ValueId input(DType dtype, const std::vector<std::int64_t>& shape) {
    tensors.push_back(llvm_test::random_tensor(dtype, shape, 7 + tensors.size(), ops::Fill::unit));
    return graph.add_input(ir::Type::tensor(dtype, ir::Shape(shape.begin(), shape.end())));
  }
  void convolve(DType dtype, std::int64_t outputs, std::int64_t kernel, std::int64_t stride, std::int64_t padding, std::int64_t dilation, std::int64_t groups) {
    const std::vector<ir::Dim> strides{stride, stride}, paddings{padding, padding}, dilations{dilation, dilation};
    const ValueId w = input(dtype, {outputs, graph.type(last).shape[1].constant() / groups, kernel, kernel});
    ops::NodeBuilder b(graph);
    const ValueId sum = b.one("conv_sum", {last, w}, {{"after", paddings}, {"before", paddings}, {"dilation", dilations}, {"groups", ir::Dim(groups)}, {"stride", strides}});
    last = b.one("relu", {b.one("add", {sum, input(dtype, {outputs, 1, 1})})});
  }
  std::string difference(const llvm_test::Choice& choice) {
    std::vector<ops::TensorView> views;
    for (auto& t : tensors) views.push_back(t.view());
    return llvm_test::difference(graph, views, choice, 400).value_or("");
  }
  std::int64_t tables() const {
    const auto program = llvm_test::compile(graph, {});
    std::int64_t count = 0;
    for (const auto& step : program->plan().steps)
      if (auto* step_of_product = std::get_if<codegen::ContractionStep>(&step)) count += step_of_product->product.a.windows.has_value();
    return count;
  }
};

}  // namespace

TEST_CASE("between convolutions channels lie last, and windows are read where they are", "[convolutions]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Chain chain;
    chain.last = chain.input(dtype, {2, 5, 19, 17});
    chain.convolve(dtype, 24, 3, 1, 1, 1, 1);
    chain.convolve(dtype, 70, 3, 1, 1, 1, 1);
    chain.convolve(dtype, 32, 3, 2, 1, 1, 1);
    chain.convolve(dtype, 40, 1, 2, 0, 1, 1);
    chain.convolve(dtype, 66, 1, 1, 0, 1, 1);
    chain.graph.add_output({chain.last, ir::OutputKind::result, {}});
    CHECK(chain.tables() >= 3);
    for (const unsigned width : {0u, 32u, 16u}) CHECK(chain.difference({.width = width}) == "");
    CHECK(chain.difference({.threads = 3}) == "");
  }
}

TEST_CASE("groups of one output channel, channels last", "[convolutions]") {
  Chain chain;
  chain.last = chain.input(DType::f32, {4, 16, 15, 10});
  chain.convolve(DType::f32, 32, 3, 2, 2, 1, 1);
  chain.convolve(DType::f32, 2, 1, 1, 2, 1, 2);
  chain.graph.add_output({chain.last, ir::OutputKind::result, {}});
  CHECK(chain.difference({}) == "");
}

TEST_CASE("places of a pooling between convolutions lie as the pictures do", "[convolutions]") {
  ir::Graph graph = llvm_test::parse(R"(graph @main (%x: f32[2, 24, 20, 20], %k: f32[32, 24, 3, 3]) {
    %y: f32[2, 32, 20, 20] = conv_sum(%x, %k) {after = [1, 1], before = [1, 1], dilation = [1, 1], groups = 1, stride = [1, 1]}
    %v: f32[2, 32, 9, 9], %p: i64[2, 32, 9, 9] = max_pool_with_indices(%y) {dilation = [1, 1], kernel_size = [3, 3], padding = [0, 0], stride = [2, 2]}
    %q: i64[2, 32, 9, 9] = add(%p, %p)
    %r: i64[2, 32] = sum(%q) {dim = [2, 3], keepdim = false}
    return %v, %r
  })");
  codegen::choose_layouts(graph, llvm_backend::CpuMachine(8));
  for (const NodeId id : graph.nodes())
    if (graph.node(id).op == "max_pool_with_indices") CHECK(graph.type(graph.node(id).results[1]).resolved_strides()[1] == ir::Dim(1));
  const llvm_test::Inputs inputs = llvm_test::random_inputs(graph);
  CHECK(llvm_test::difference(graph, inputs.views, {}, 60).value_or("") == "");
}

TEST_CASE("random chains of convolutions", "[convolutions]") {
  const auto seed = static_cast<unsigned>(std::random_device{}());
  std::mt19937 random(seed);
  auto draw = [&](std::int64_t low, std::int64_t high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  for (int i = 0; i < 25; ++i) {
    Chain chain;
    const std::int64_t groups = draw(0, 3) == 0 ? 2 : 1;
    chain.last = chain.input(DType::f32, {draw(1, 4), draw(1, 24), draw(7, 20), draw(7, 20)});  // large enough for the second kernel
    const std::int64_t middle = draw(16, 40) * groups;
    chain.convolve(DType::f32, middle, draw(1, 3), draw(1, 2), draw(0, 2), 1, 1);
    chain.convolve(DType::f32, draw(1, 70) * groups, draw(1, 2), draw(1, 2), draw(0, 2), draw(1, 2), groups);
    chain.convolve(DType::f32, draw(1, 70), 1, 1, draw(0, 1), 1, 1);
    chain.graph.add_output({chain.last, ir::OutputKind::result, {}});
    INFO("seed " << seed << ", chain " << i);
    CHECK(chain.difference({.width = draw(0, 1) ? 0u : 32u, .threads = static_cast<int>(draw(1, 2))}) == "");
  }
}

namespace {

/// A chain whose second convolution has 3 x 3 taps at stride 1 over enough channels to be transformed.
Chain transformed_chain(DType dtype, std::vector<std::int64_t> shape, std::int64_t channels, std::int64_t outputs, std::int64_t padding) {
  Chain chain;
  chain.last = chain.input(dtype, shape);
  chain.convolve(dtype, channels, 1, 1, 0, 1, 1);
  chain.convolve(dtype, outputs, 3, 1, padding, 1, 1);
  chain.graph.add_output({chain.last, ir::OutputKind::result, {}});
  return chain;
}

/// Convolutions that are transformed by squares of a side.
std::int64_t transformed(const ir::Graph& graph, const llvm_test::Choice& choice = {}, std::int64_t side = llvm_backend::kSmallSquare) {
  const auto program = llvm_test::compile(graph, choice);
  std::int64_t count = 0;
  for (std::size_t s = 0; s < program->plan().steps.size(); ++s)
    if (const auto* product = program->product(s)) count += product->picture && product->picture->square_side == side;
  return count;
}

}  // namespace

TEST_CASE("convolutions of 3 x 3 taps are transformed", "[convolutions]") {
  for (const auto& [height, width, padding] : {std::tuple{12, 12, 1}, {11, 13, 1}, {9, 30, 0}, {13, 12, 2}, {40, 59, 1}}) {
    Chain chain = transformed_chain(DType::f32, {3, 5, height, width}, 37, 70, padding);
    INFO(height << " x " << width << ", padding " << padding);
    CHECK(transformed(chain.graph) == 1);
    for (const unsigned vector : {0u, 32u, 16u}) CHECK(chain.difference({.width = vector}) == "");
    CHECK(chain.difference({.threads = 3}) == "");
  }
  Chain wide = transformed_chain(DType::f32, {2, 32, 10, 8}, 300, 40, 1);
  CHECK(transformed(wide.graph) == 1);
  CHECK(wide.difference({}) == "");
  Chain narrow = transformed_chain(DType::f32, {9, 5, 19, 16}, 37, 32, 1);
  CHECK(transformed(narrow.graph) == 1);
  for (const int threads : {1, 2}) CHECK(narrow.difference({.threads = threads}) == "");
  for (const std::int64_t outputs : {24, 29}) {
    Chain few = transformed_chain(DType::f32, {2, 5, 17, 14}, 24, outputs, 1);
    CHECK(transformed(few.graph) == 1);
    for (const unsigned vector : {0u, 32u, 16u}) CHECK(few.difference({.width = vector, .threads = 2}) == "");
  }
  Chain exact = transformed_chain(DType::f64, {2, 5, 11, 13}, 37, 70, 1);
  CHECK(transformed(exact.graph) == 1);
  CHECK(exact.difference({}) == "");
}

TEST_CASE("transformed convolutions have the same bits on any number of threads", "[convolutions]") {
  for (const auto& [outputs, pictures, height, width] : {std::tuple{32, 16, 16, 16}, {32, 16, 8, 8}, {32, 16, 4, 4}, {40, 3, 9, 11}, {24, 1, 13, 12}, {100, 2, 12, 12}}) {
    const ir::Graph graph = llvm_test::parse(fmt::format(R"(graph @main (%x: f32[{1}, 48, {2}, {3}], %k: f32[{0}, 48, 3, 3]) {{
      %y: f32[{1}, {0}, {2}, {3}] = conv_sum(%x, %k) {{after = [1, 1], before = [1, 1], dilation = [1, 1], groups = 1, stride = [1, 1]}}
      %r: f32[{1}, {0}, {2}, {3}] = relu(%y)
      return %r
    }})", outputs, pictures, height, width));
    for (const bool relaxed : {false, true}) {
      INFO(outputs << " channels, " << pictures << " of " << height << " x " << width << ", relaxed " << relaxed);
      CHECK(transformed(graph, {.relaxed = relaxed}, relaxed ? llvm_backend::kLargeSquare : llvm_backend::kSmallSquare) == 1);
      const llvm_test::Inputs inputs = llvm_test::random_inputs(graph);
      const auto one = llvm_test::run(graph, inputs.views, {.relaxed = relaxed});
      for (const int threads : {2, 3, 8}) {
        const auto many = llvm_test::run(graph, inputs.views, {.relaxed = relaxed, .threads = threads});
        CHECK(std::memcmp(one[0].view().data, many[0].view().data, static_cast<std::size_t>(outputs * pictures * height * width) * sizeof(float)) == 0);
      }
      CHECK(llvm_test::difference(graph, inputs.views, {.relaxed = relaxed, .threads = 2}, 400).value_or("") == "");
    }
  }
}

TEST_CASE("convolutions that the graph gives are transformed, also where others read them", "[convolutions]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main (%x: f32[2, 32, 13, 12], %k: f32[40, 32, 3, 3], %l: f32[32, 40, 3, 3]) {
    %y: f32[2, 40, 13, 12] = conv_sum(%x, %k) {after = [1, 1], before = [1, 1], dilation = [1, 1], groups = 1, stride = [1, 1]}
    %z: f32[2, 32, 13, 12] = conv_sum(%y, %l) {after = [1, 1], before = [1, 1], dilation = [1, 1], groups = 1, stride = [1, 1]}
    %r: f32[2, 32, 13, 12] = relu(%z)
    %m: f32[40] = sum(%y) {dim = [0, 2, 3], dtype = f32, keepdim = false}
    return %y, %z, %r, %m
  })");
  CHECK(transformed(graph) == 2);
  const llvm_test::Inputs inputs = llvm_test::random_inputs(graph);
  CHECK(llvm_test::difference(graph, inputs.views, {}, 400).value_or("") == "");
}

TEST_CASE("large squares, where their error is allowed", "[convolutions]") {
  for (const auto& [height, width, padding] : {std::tuple{12, 12, 1}, {11, 13, 1}, {9, 30, 0}, {14, 15, 2}, {40, 59, 1}, {4, 30, 1}}) {
    Chain chain = transformed_chain(DType::f32, {3, 5, height, width}, 37, 70, padding);
    INFO(height << " x " << width << ", padding " << padding);
    CHECK(transformed(chain.graph, {}, llvm_backend::kLargeSquare) == 0);
    CHECK(transformed(chain.graph, {.relaxed = true}, llvm_backend::kLargeSquare) == 1);
    for (const unsigned vector : {0u, 32u, 16u}) CHECK(chain.difference({.relaxed = true, .width = vector}) == "");
    CHECK(chain.difference({.relaxed = true, .threads = 3}) == "");
  }
  Chain in_place = transformed_chain(DType::f32, {2, 5, 13, 18}, 40, 64, 1);
  CHECK(in_place.difference({.relaxed = true}) == "");
  Chain narrow = transformed_chain(DType::f32, {9, 5, 19, 16}, 37, 32, 1);
  CHECK(transformed(narrow.graph, {.relaxed = true}, llvm_backend::kLargeSquare) == 1);
  for (const int threads : {1, 2}) CHECK(narrow.difference({.relaxed = true, .threads = threads}) == "");
  Chain wide = transformed_chain(DType::f32, {2, 32, 10, 8}, 300, 300, 1);
  CHECK(transformed(wide.graph, {.relaxed = true}, llvm_backend::kLargeSquare) == 0);  // too many weights
  Chain exact = transformed_chain(DType::f64, {2, 5, 11, 13}, 37, 70, 1);
  CHECK(exact.difference({.relaxed = true}) == "");
}

TEST_CASE("convolutions that do not slide by one place are not transformed", "[convolutions]") {
  for (const auto& [kernel, stride, dilation] : {std::tuple{3, 2, 1}, {3, 1, 2}, {2, 1, 1}, {5, 1, 1}}) {
    Chain chain;
    chain.last = chain.input(DType::f32, {3, 5, 24, 24});
    chain.convolve(DType::f32, 40, 1, 1, 0, 1, 1);
    chain.convolve(DType::f32, 40, kernel, stride, 1, dilation, 1);
    chain.graph.add_output({chain.last, ir::OutputKind::result, {}});
    INFO(kernel << " taps, stride " << stride << ", dilation " << dilation);
    CHECK(transformed(chain.graph) == 0);
    CHECK(chain.difference({}) == "");
  }
}

TEST_CASE("where a transformed convolution is not finite, the direct one is taken", "[convolutions]") {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float value : {infinity, nan, 3e38f}) {
    ir::Graph graph;
    ops::NodeBuilder b(graph);
    const std::vector<std::int64_t> x_shape{2, 40, 12, 12}, w_shape{40, 40, 3, 3};
    const ValueId x = graph.add_input(ir::Type::tensor(DType::f32, ir::Shape(x_shape.begin(), x_shape.end())));
    const ValueId w = graph.add_input(ir::Type::tensor(DType::f32, ir::Shape(w_shape.begin(), w_shape.end())));
    const std::vector<ir::Dim> ones(2, ir::Dim(1));
    const ValueId copy = b.one("relu", {x});
    const ValueId sum = b.one("conv_sum", {copy, w}, {{"after", ones}, {"before", ones}, {"dilation", ones}, {"groups", ir::Dim(1)}, {"stride", ones}});
    graph.add_output({b.one("neg", {sum}), ir::OutputKind::result, {}});
    CHECK(transformed(graph) == 1);
    ops::HostTensor picture = llvm_test::random_tensor(DType::f32, x_shape, 1, ops::Fill::unit), weight = llvm_test::random_tensor(DType::f32, w_shape, 2, ops::Fill::unit);
    float* pixels = static_cast<float*>(picture.data());
    float* taps = static_cast<float*>(weight.data());
    for (std::size_t i = 0; i < 40 * 40 * 9; ++i) taps[i] *= 0.01f;
    for (const std::size_t place : {0u, 700u, 701u, 5003u}) pixels[place] = value;
    const std::vector<ops::TensorView> views{picture.view(), weight.view()};
    INFO("value " << value);
    CHECK(llvm_test::difference(graph, views, {}, 400).value_or("") == "");
    if (!std::isfinite(value)) CHECK(llvm_test::difference(graph, views, {.relaxed = true}, 400).value_or("") == "");
  }
}

TEST_CASE("weights that stay packed are packed anew when they change", "[convolutions]") {
  for (const std::int64_t taps : {1, 2, 3}) {
    Chain chain;
    chain.last = chain.input(DType::f32, {2, 5, 16, 16});
    chain.convolve(DType::f32, 40, 1, 1, 0, 1, 1);
    chain.convolve(DType::f32, 40, taps, 1, 1, 1, 1);
    chain.graph.add_output({chain.last, ir::OutputKind::result, {}});
    const auto program = llvm_test::compile(chain.graph, {});
    std::vector<ops::TensorView> views;
    for (auto& t : chain.tensors) views.push_back(t.view());
    float* weight = static_cast<float*>(chain.tensors[3].data());
    for (int call = 0; call < 12; ++call) {
      if (call == 1 || call == 4 || call == 5 || call == 8) weight[static_cast<std::size_t>(call) * 7] += 0.5f;
      const auto got = llvm_test::run(*program, chain.graph, views);
      const auto want = ops::evaluate(chain.graph, views, ops::Precision::judge);
      INFO(taps << " taps, call " << call);
      CHECK(ops::first_difference(got[0].view(), want[0].view(), 400).value_or("") == "");
    }
  }
}

TEST_CASE("few pixels are read in windows where the weights are constants", "[convolutions]") {
  for (const auto& [images, side, channels, outputs] : {std::tuple{1, 4, 56, 72}, {1, 2, 40, 20}, {3, 4, 24, 130}, {1, 9, 16, 64}, {1, 4, 512, 64}}) {
    const std::vector<std::int64_t> x_shape{images, channels, side, side}, w_shape{outputs, channels, 3, 3};
    const auto type = [](const std::vector<std::int64_t>& shape) { return ir::Type::tensor(DType::f32, ir::Shape(shape.begin(), shape.end())); };
    const ops::HostTensor picture = llvm_test::random_tensor(DType::f32, x_shape, 1, ops::Fill::unit), weight = llvm_test::random_tensor(DType::f32, w_shape, 2, ops::Fill::unit);
    const auto convolution = [&](ir::Graph& graph, bool constant) {
      ops::NodeBuilder b(graph);
      const ValueId x = graph.add_input(type(x_shape));
      const auto known = [&] {
        const auto index = static_cast<std::int64_t>(graph.add_constant({type(w_shape), weight.view().data, nullptr, "weight"}).value);
        return graph.node(graph.add_node("constant", {}, ir::Attributes{{"index", ir::Dim(index)}}, {type(w_shape)})).results[0];
      };
      const ValueId w = constant ? known() : graph.add_input(type(w_shape)), copy = b.one("relu", {x});
      const std::vector<ir::Dim> ones(2, ir::Dim(1));
      const ValueId sum = b.one("conv_sum", {copy, w}, {{"after", ones}, {"before", ones}, {"dilation", ones}, {"groups", ir::Dim(1)}, {"stride", ones}});
      graph.add_output({b.one("neg", {sum}), ir::OutputKind::result, {}});
    };
    ir::Graph graph, judged;
    convolution(graph, true), convolution(judged, false);
    INFO(images << " x " << channels << " x " << side << " x " << side << " to " << outputs);
    const auto program = llvm_test::compile(graph, {.threads = 2});
    CHECK(std::ranges::count_if(program->plan().steps, [](const auto& step) {
      const auto* with = std::get_if<codegen::ContractionStep>(&step);
      return with && with->product.a.windows;
    }) == 1);
    const std::vector<ops::TensorView> views{picture.view()}, both{picture.view(), weight.view()};
    const auto want = ops::evaluate(judged, both, ops::Precision::judge);
    for (int call = 0; call < 2; ++call) CHECK(ops::first_difference(llvm_test::run(*program, graph, views, 2)[0].view(), want[0].view(), 400).value_or("") == "");
  }
}
