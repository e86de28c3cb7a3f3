// Gradients of the weights of convolutions: sums over places of runs that lie side by side in both operands.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "catch.h"
#include "compile/machine.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/notation/move.h"
#include "core/ops/notation/window.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

struct Weights {
  std::vector<std::int64_t> in, out, kernel;  // spatial
  std::int64_t images, channels, outputs;
  std::vector<std::int64_t> stride, before, dilation;
  std::int64_t groups = 1;
  bool weight_last = false;  // channels lie last in the result too
  bool epilogue = false;
};

std::string text(const Weights& w) {
  return fmt::format("{} x {} to {} channels, in [{}], out [{}], kernel [{}], stride [{}], before [{}], dilation [{}], groups {}{}{}", w.images, w.channels, w.outputs, fmt::join(w.in, ", "),
                     fmt::join(w.out, ", "), fmt::join(w.kernel, ", "), fmt::join(w.stride, ", "), fmt::join(w.before, ", "), fmt::join(w.dilation, ", "), w.groups,
                     w.weight_last ? ", weight channels last" : "", w.epilogue ? ", with what follows" : "");
}

/// The graph of pictures whose channels lie last.
struct Built {
  ir::Graph graph;
  std::vector<ops::HostTensor> tensors;
  std::vector<ops::TensorView> views;

  Built(const Weights& w, DType dtype) {
    ops::NodeBuilder b(graph);
    const auto input = [&](std::vector<std::int64_t> shape, std::uint64_t seed) {
      tensors.push_back(llvm_test::random_tensor(dtype, shape, seed, ops::Fill::unit));
      return graph.add_input(ir::Type::tensor(dtype, ir::Shape(shape.begin(), shape.end())));
    };
    const auto rank = static_cast<std::int64_t>(w.in.size());
    std::vector<std::int64_t> first{0, rank + 1}, back{0};
    for (std::int64_t d = 0; d < rank; ++d) first.push_back(1 + d), back.push_back(2 + d);
    back.push_back(1);
    const auto picture = [&](std::int64_t channels, const std::vector<std::int64_t>& spatial, std::uint64_t seed) {
      std::vector<std::int64_t> shape{w.images};
      shape.insert(shape.end(), spatial.begin(), spatial.end());
      shape.push_back(channels);
      return ops::permute_by(b, input(shape, seed), first);
    };
    const ValueId x = picture(w.channels, w.in, 3), g = picture(w.outputs, w.out, 4);
    ValueId y = b.one("conv_weight_sum", {x, g}, {{"before", ops::dims_of(w.before)}, {"dilation", ops::dims_of(w.dilation)}, {"groups", ir::Dim(w.groups)}, {"kernel", ops::dims_of(w.kernel)}, {"stride", ops::dims_of(w.stride)}});
    if (w.weight_last) y = ops::permute_by(b, y, back);
    if (w.epilogue) {
      std::vector<std::int64_t> shape;
      for (const ir::Dim& d : graph.type(y).shape) shape.push_back(d.constant());
      y = b.one("add", {b.one("mul", {y, b.literal(0.25)}), input(shape, 5)});
    }
    graph.add_output({y, ir::OutputKind::result, {}});
    for (auto& t : tensors) views.push_back(t.view());
  }

};

/// Whether a product of the graph's plan is so.
template <class Holds>
bool has_product(const ir::Graph& graph, Holds holds) {
  const auto program = llvm_test::compile(graph);
  return std::ranges::any_of(program->plan().steps, [&](const codegen::Step& step) {
    const auto* product = std::get_if<codegen::ContractionStep>(&step);
    return product && holds(product->product);
  });
}

/// Whether a product reads its right operand in runs of columns.
bool reads_runs(const ir::Graph& graph) {
  return has_product(graph, [](const codegen::Product& product) { return product.b.windows.has_value(); });
}
/// Whether it does so by squares of pixels.
bool takes_squares(const ir::Graph& graph) {
  return has_product(graph, [](const codegen::Product& product) { return product.b.windows && product.picture; });
}

std::vector<Weights> cases() {
  return {
      {{9, 8}, {9, 8}, {3, 3}, 2, 16, 24, {1, 1}, {1, 1}, {1, 1}},
      {{4, 4}, {4, 4}, {3, 3}, 5, 70, 100, {1, 1}, {1, 1}, {1, 1}},
      {{12, 13}, {6, 7}, {3, 3}, 2, 64, 9, {2, 2}, {1, 1}, {1, 1}},
      {{12, 13}, {6, 7}, {1, 1}, 2, 48, 32, {2, 2}, {0, 0}, {1, 1}},
      {{17, 15}, {13, 11}, {3, 3}, 1, 20, 40, {1, 1}, {0, 0}, {2, 2}},
      {{9, 9}, {9, 9}, {3, 3}, 2, 48, 72, {1, 1}, {1, 1}, {1, 1}, 3},
      {{40}, {20}, {5}, 3, 32, 17, {2}, {2}, {1}},
      {{5, 6, 4}, {5, 6, 4}, {3, 1, 3}, 2, 24, 30, {1, 1, 1}, {1, 0, 1}, {1, 1, 1}},
      {{7, 7}, {1, 1}, {7, 7}, 3, 16, 8, {1, 1}, {0, 0}, {1, 1}},
      {{3, 3}, {7, 7}, {3, 3}, 2, 16, 8, {1, 1}, {3, 3}, {1, 1}},
      {{30, 30}, {30, 30}, {3, 3}, 3, 32, 16, {1, 1}, {1, 1}, {1, 1}},
      {{8, 8}, {8, 8}, {3, 3}, 0, 16, 8, {1, 1}, {1, 1}, {1, 1}},
  };
}

/// Of these the pictures are transformed: sides that are odd, more rows and columns than a task takes, fewer than a vector in the last panel, fewer lines than
/// parts, more than are multiplied together.
std::vector<Weights> transformed() {
  return {
      {{13, 11}, {13, 11}, {3, 3}, 2, 40, 50, {1, 1}, {1, 1}, {1, 1}},
      {{8, 8}, {8, 8}, {3, 3}, 3, 100, 97, {1, 1}, {1, 1}, {1, 1}},
      {{9, 9}, {9, 9}, {3, 3}, 4, 96, 96, {1, 1}, {1, 1}, {1, 1}, 3},
      {{12, 14}, {10, 12}, {3, 3}, 2, 72, 32, {1, 1}, {0, 0}, {1, 1}},
      {{7, 150}, {7, 150}, {3, 3}, 1, 24, 24, {1, 1}, {1, 1}, {1, 1}},
      {{2, 3000}, {2, 3000}, {3, 3}, 1, 24, 24, {1, 1}, {1, 1}, {1, 1}},
      {{40, 40}, {40, 40}, {3, 3}, 3, 32, 24, {1, 1}, {1, 1}, {1, 1}},
  };
}

}  // namespace

TEST_CASE("gradients of weights over many shapes", "[products]") {
  std::vector<Weights> all = cases();
  std::ranges::copy(transformed(), std::back_inserter(all));
  for (Weights w : all)
    for (const bool weight_last : {false, true})
      for (const bool epilogue : {false, true}) {
        w.weight_last = weight_last, w.epilogue = epilogue;
        for (const unsigned width : {0u, 32u, 16u})
          for (const DType dtype : {DType::f32, DType::f64}) {
            INFO(text(w) << ", " << name_of(dtype) << ", width " << width);
            const Built built(w, dtype);
            CHECK(llvm_test::difference(built.graph, built.views, {.width = width}, 60).value_or("") == "");
          }
      }
}

TEST_CASE("gradients of weights read both pictures where they lie", "[products]") {
  for (const Weights& w : cases()) {
    INFO(text(w));
    const bool one_matrix = w.out[0] == 1;  // a picture is a row
    if (w.images > 0 && !one_matrix) CHECK(reads_runs(Built(w, DType::f32).graph));
    CHECK(!takes_squares(Built(w, DType::f32).graph));
  }
}

TEST_CASE("3 x 3 taps that step by one over enough pixels and channels are summed by squares", "[products]") {
  for (const Weights& w : transformed()) {
    INFO(text(w));
    CHECK(takes_squares(Built(w, DType::f32).graph));
    CHECK(!takes_squares(Built(w, DType::bf16).graph));
  }
}

TEST_CASE("of no pictures the gradient of a weight is 0, where their number is not known", "[products]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main [s0] (%x: f32[s0, 12, 12, 32], %g: f32[s0, 12, 12, 32]) {
    %a: f32[s0, 32, 12, 12] = permute(%x) {dims = [0, 3, 1, 2]}
    %b: f32[s0, 32, 12, 12] = permute(%g) {dims = [0, 3, 1, 2]}
    %w: f32[32, 32, 3, 3] = conv_weight_sum(%a, %b) {before = [1, 1], dilation = [1, 1], groups = 1, kernel = [3, 3], stride = [1, 1]}
    return %w
  })");
  CHECK(takes_squares(graph));
  const auto program = llvm_test::compile(graph);
  for (const std::int64_t pictures : {0, 1, 5}) {
    const auto x = llvm_test::random_tensor(DType::f32, {pictures, 12, 12, 32}, 3), g = llvm_test::random_tensor(DType::f32, {pictures, 12, 12, 32}, 4);
    const ops::TensorView views[] = {x.view(), g.view()};
    const auto want = ops::evaluate(graph, views, ops::Precision::judge);
    CHECK(ops::first_difference(llvm_test::run(*program, graph, views)[0].view(), want[0].view(), 60).value_or("") == "");
  }
}

TEST_CASE("pictures that lie in rows are copied for the gradient of a weight, not gathered", "[products]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main (%x: f32[3, 32, 13, 12], %g: f32[3, 24, 13, 12]) {
    %w: f32[24, 32, 3, 3] = conv_weight_sum(%x, %g) {before = [1, 1], dilation = [1, 1], groups = 1, kernel = [3, 3], stride = [1, 1]}
    return %w
  })");
  CHECK(reads_runs(graph));
  CHECK(llvm_test::compile(graph)->plan().steps.size() == 3);
  const llvm_test::Inputs inputs = llvm_test::random_inputs(graph);
  CHECK(llvm_test::difference(graph, inputs.views, {}, 60).value_or("") == "");
}

TEST_CASE("a long sum of which few results come reads both matrices where they lie", "[products]") {
  const auto one_tap = [](std::int64_t images, std::int64_t channels, std::int64_t outputs) { return Weights{{32, 33}, {32, 33}, {1, 1}, images, channels, outputs, {1, 1}, {0, 0}, {1, 1}}; };
  const bool wide = llvm_backend::detect_machine().lanes() == 16;
  CHECK(reads_runs(Built(one_tap(4, 70, 130), DType::f32).graph) == wide);
  CHECK(!reads_runs(Built(one_tap(2, 70, 130), DType::f32).graph));   // a short sum
  CHECK(!reads_runs(Built(one_tap(4, 512, 384), DType::f32).graph));  // many results
  for (Weights w : {one_tap(4, 70, 130), one_tap(17, 64, 30), one_tap(16, 200, 128), one_tap(5, 800, 150)})
    for (const bool epilogue : {false, true}) {
      w.epilogue = epilogue;
      INFO(text(w) << ", epilogue " << epilogue);
      const Built built(w, DType::f32);
      for (const int threads : {1, 3}) CHECK(llvm_test::difference(built.graph, built.views, {.threads = threads}, 60).value_or("") == "");
    }
}

TEST_CASE("pictures of few channels are padded for the gradient of a weight as for the convolution", "[products]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main (%x: f32[2, 3, 40, 38], %g: f32[2, 64, 20, 19], %k: f32[64, 64, 3, 3]) {
    %w: f32[64, 3, 7, 7] = conv_weight_sum(%x, %g) {before = [3, 3], dilation = [1, 1], groups = 1, kernel = [7, 7], stride = [2, 2]}
    %y: f32[2, 64, 20, 19] = conv_sum(%g, %k) {after = [1, 1], before = [1, 1], dilation = [1, 1], groups = 1, stride = [1, 1]}
    return %w, %y
  })");
  CHECK(reads_runs(graph));
  const llvm_test::Inputs inputs = llvm_test::random_inputs(graph);
  CHECK(llvm_test::difference(graph, inputs.views, {}, 60).value_or("") == "");
}

TEST_CASE("sums over many places have the same bits on any number of threads", "[products]") {
  for (const Weights& w : {transformed().back(), Weights{{40, 40}, {40, 40}, {3, 3}, 3, 16, 24, {1, 1}, {1, 1}, {1, 1}}, Weights{{64}, {64}, {1}, 80, 64, 30, {1}, {0}, {1}}, Weights{{64}, {64}, {1}, 272, 200, 128, {1}, {0}, {1}}}) {
    INFO(text(w));
    const Built built(w, DType::f32);
    const auto one = llvm_test::run(built.graph, built.views, {.threads = 1}), three = llvm_test::run(built.graph, built.views, {.threads = 3});
    const ops::TensorView a = one[0].view(), b = three[0].view();
    CHECK(std::memcmp(a.data, b.data, static_cast<std::size_t>(w.outputs * w.channels * w.kernel[0] * (w.kernel.size() > 1 ? w.kernel[1] : 1)) * sizeof(float)) == 0);
    CHECK(llvm_test::difference(built.graph, built.views, {.threads = 3}, 60).value_or("") == "");
  }
}

TEST_CASE("what lies in the padding is not multiplied, and what is not finite reaches the taps that it meets", "[products]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const Weights& w : {Weights{{6, 6}, {6, 6}, {3, 3}, 2, 16, 8, {1, 1}, {1, 1}, {1, 1}}, Weights{{12, 12}, {12, 12}, {3, 3}, 2, 32, 24, {1, 1}, {1, 1}, {1, 1}}}) {
    INFO(text(w));
    Built built(w, DType::f32);
    std::fill_n(static_cast<float*>(built.views[0].data), w.images * w.in[0] * w.in[1] * w.channels, 1.0f);
    std::fill_n(static_cast<float*>(built.views[1].data), w.images * w.out[0] * w.out[1] * w.outputs, infinity);
    const auto results = llvm_test::run(built.graph, built.views);
    const auto* values = static_cast<const float*>(results[0].view().data);
    CHECK(std::all_of(values, values + w.outputs * w.channels * 9, [](float v) { return v == infinity; }));
  }
}
