// Convolutions whose results are pooled while they are in cache: windows, strides and padding of the pooling, ends of pictures, threads.
#include <algorithm>

#include "catch.h"
#include "core/ops/build/node_builder.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

struct Windows {
  std::int64_t kernel, stride, padding = 0, dilation = 1;
  bool ceil = false;
};

/// A convolution over few channels, relu, a pooling, and a convolution behind it, for which channels lie last.
struct Stem {
  ir::Graph graph;
  ops::NodeBuilder b{graph};
  std::vector<ops::HostTensor> tensors;
  ValueId convolved;

  ValueId input(const std::vector<std::int64_t>& shape, std::optional<ir::Dim> first = {}) {
    tensors.push_back(llvm_test::random_tensor(DType::f32, shape, 11 + tensors.size(), ops::Fill::unit));
    ir::Shape dims(shape.begin(), shape.end());
    if (first) dims[0] = *first;
    return graph.add_input(ir::Type::tensor(DType::f32, dims));
  }
  ValueId convolve(ValueId x, std::int64_t outputs, std::int64_t stride) {
    const std::vector<ir::Dim> strides(2, ir::Dim(stride)), ones(2, ir::Dim(1));
    const ValueId w = input({outputs, graph.type(x).shape[1].constant(), 3, 3});
    return b.one("conv_sum", {x, w}, {{"after", ones}, {"before", ones}, {"dilation", ones}, {"groups", ir::Dim(1)}, {"stride", strides}});
  }
  static ir::Attributes attributes(const Windows& w, bool dilates) {
    const std::vector<ir::Dim> kernel(2, ir::Dim(w.kernel)), stride(2, ir::Dim(w.stride)), padding(2, ir::Dim(w.padding)), dilation(2, ir::Dim(w.dilation));
    ir::Attributes all{{"ceil_mode", w.ceil}, {"kernel_size", kernel}, {"padding", padding}, {"stride", stride}};
    if (dilates) all.emplace_back("dilation", dilation);
    return all;
  }

  /// `epilogue`: a shift and relu between the convolution and the pooling. `any_count`: of pictures, which the call says.
  Stem(std::vector<std::int64_t> pictures, std::int64_t channels, const Windows& windows, bool maximum = true, bool epilogue = true, bool any_count = false) {
    std::optional<ir::Dim> count;
    if (any_count) count = ir::Dim::symbol(graph.add_symbol({"n"}));
    convolved = convolve(input(pictures, count), channels, 1);
    if (epilogue) convolved = b.one("relu", {b.one("add", {convolved, input({channels, 1, 1})})});
    const ValueId pooled = b.one(maximum ? "max_pool" : "window_sum", {convolved}, attributes(windows, maximum));
    give(convolve(pooled, 20, 2));
  }
  void give(ValueId value) { graph.add_output({value, ir::OutputKind::result, {}}); }

  std::size_t pooled_products() const {
    const auto program = llvm_test::compile(graph);
    return static_cast<std::size_t>(std::ranges::count_if(program->plan().steps, [](const auto& step) {
      const auto* product = std::get_if<codegen::ContractionStep>(&step);
      return product && product->pooling;
    }));
  }
  std::string difference(const llvm_test::Choice& choice = {}) {
    std::vector<ops::TensorView> views;
    for (auto& t : tensors) views.push_back(t.view());
    return llvm_test::difference(graph, views, choice, 400).value_or("");
  }
};

}  // namespace

TEST_CASE("poolings of many windows run on rows of a product in cache", "[pooling]") {
  unsigned width = 0;
  for (const Windows& w : {Windows{3, 2, 1}, {2, 2}, {3, 2, 0, 1, true}, {3, 1, 1, 2}, {5, 3, 2}, {2, 3}}) {
    Stem stem({4, 6, 64, 66}, 32, w);
    INFO("windows of " << w.kernel << ", stride " << w.stride << ", padding " << w.padding << ", dilation " << w.dilation << (w.ceil ? ", rounded up" : ""));
    CHECK(stem.pooled_products() == 1);
    CHECK(stem.difference({.width = width, .threads = 3}) == "");
    width = 32 - width;
  }
}

TEST_CASE("averages, and what follows no epilogue, are pooled as they come", "[pooling]") {
  for (const auto& [maximum, epilogue] : {std::pair{false, true}, {true, false}, {false, false}}) {
    Stem stem({1, 6, 120, 117}, 40, {3, 2, 1}, maximum, epilogue);
    INFO((maximum ? "maximum" : "sum") << (epilogue ? " after relu" : " of the product"));
    CHECK(stem.pooled_products() == 1);
    CHECK(stem.difference({.width = maximum ? 0u : 16u, .threads = epilogue ? 1 : 2}) == "");
  }
}

TEST_CASE("any number of pictures is pooled", "[pooling]") {
  for (const Windows& w : {Windows{3, 2, 1}, {2, 2}}) {
    for (const std::int64_t count : {1, 2, 7}) {
      Stem stem({count, 6, 30, 26}, 24, w, true, true, true);
      CHECK(stem.pooled_products() == 1);
      for (const int threads : {1, 3}) CHECK(stem.difference({.threads = threads}) == "");
    }
  }
}

TEST_CASE("a product that something else reads is not pooled as it comes", "[pooling]") {
  Stem given({4, 6, 64, 66}, 32, {2, 2});
  given.give(given.convolved);
  CHECK(given.pooled_products() == 0);
  CHECK(given.difference() == "");
  Stem read({4, 6, 64, 66}, 32, {2, 2});
  read.give(read.convolve(read.convolved, 5, 1));
  CHECK(read.pooled_products() == 0);
  CHECK(read.difference() == "");
  Stem small({1, 6, 20, 20}, 32, {2, 2});
  CHECK(small.pooled_products() == 0);
}
