// Sums over the rows of products, taken as the products come: what is summed, by which tiles and squares, on how many threads, and what is not.
#include <algorithm>
#include <cmath>

#include "catch.h"
#include "core/ops/build/node_builder.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// A convolution whose pictures have channels last, what may follow it, and sums over all pixels of that and of what is computed from it and other pictures.
struct Summed {
  ir::Graph graph;
  ops::NodeBuilder b{graph};
  std::vector<ops::HostTensor> tensors;
  ValueId convolved, others;

  ValueId input(const std::vector<std::int64_t>& shape, DType dtype) {
    tensors.push_back(llvm_test::random_tensor(dtype, shape, 31 + tensors.size(), ops::Fill::unit));
    return graph.add_input(ir::Type::tensor(dtype, ir::Shape(shape.begin(), shape.end())));
  }
  /// Of [N, H, W, C], as [N, C, H, W].
  ValueId pictures(const std::vector<std::int64_t>& shape, DType dtype) {
    return b.one("permute", {input({shape[0], shape[2], shape[3], shape[1]}, dtype)}, {{"dims", std::vector<ir::Dim>{0, 3, 1, 2}}});
  }

  Summed(std::vector<std::int64_t> shape, std::int64_t channels, std::int64_t kernel, bool follows, DType dtype = DType::f32) {
    const std::vector<ir::Dim> ones(2, ir::Dim(1)), padding(2, ir::Dim(kernel / 2));
    const ValueId x = pictures(shape, dtype), w = input({channels, shape[1], kernel, kernel}, dtype);
    convolved = b.one("conv_sum", {x, w}, {{"after", padding}, {"before", padding}, {"dilation", ones}, {"groups", ir::Dim(1)}, {"stride", ones}});
    if (follows) convolved = b.one("relu", {convolved});
    shape[1] = channels;
    others = pictures(shape, dtype);
  }

  ValueId sum(ValueId value) {
    return b.one("sum", {value}, {{"dim", std::vector<ir::Dim>{0, 2, 3}}, {"dtype", graph.type(value).dtype}, {"keepdim", false}});
  }
  void give(ValueId value) { graph.add_output({value, ir::OutputKind::result, {}}); }
  /// Rows by which somebody else needs the product in memory.
  void give_all() {
    give(sum(convolved));
    give(sum(b.one("mul", {convolved, others})));
    give(b.one("permute", {b.one("mul", {convolved, others})}, {{"dims", std::vector<ir::Dim>{0, 2, 3, 1}}}));
  }

  std::size_t summed_products() const {
    const auto program = llvm_test::compile(graph);
    return static_cast<std::size_t>(std::ranges::count_if(program->plan().steps, [](const auto& step) {
      const auto* product = std::get_if<codegen::ContractionStep>(&step);
      return product && product->sums;
    }));
  }
  std::string difference(const llvm_test::Choice& choice = {}) {
    std::vector<ops::TensorView> views;
    for (auto& t : tensors) views.push_back(t.view());
    return llvm_test::difference(graph, views, choice, 4000).value_or("");
  }
};

}  // namespace

TEST_CASE("sums over pixels are taken as a convolution comes", "[column_sums]") {
  for (const std::int64_t kernel : {1, 3})
    for (const bool follows : {false, true})
      for (const auto& shape : {std::vector<std::int64_t>{2, 16, 11, 13}, {3, 32, 9, 8}, {1, 24, 24, 30}})
        for (const std::int64_t channels : {20, 70}) {
          Summed summed(shape, channels, kernel, follows);
          summed.give_all();
          INFO(kernel << " x " << kernel << ", pictures of " << shape[2] << " x " << shape[3] << ", " << shape[1] << " to " << channels << " channels" << (follows ? ", relu" : ""));
          const bool many = shape[0] * shape[2] * shape[3] >= 192;
          CHECK(summed.summed_products() == (many ? 1 : 0));
          CHECK(summed.difference() == "");
          CHECK(summed.difference({.width = 32, .threads = 3}) == "");
          CHECK(summed.difference({.threads = 4}) == "");
        }
}

TEST_CASE("sums of float64, and of squares that are not finite, are taken as they come", "[column_sums]") {
  Summed wide({2, 16, 12, 12}, 24, 3, true, DType::f64);
  wide.give_all();
  CHECK(wide.difference({.threads = 2}) == "");
  Summed infinite({2, 32, 16, 16}, 48, 3, true);
  infinite.give_all();
  infinite.tensors[0].as<float>()[77] = INFINITY;
  CHECK(infinite.summed_products() == 1);
  CHECK(infinite.difference({.threads = 2}) == "");
}

TEST_CASE("sums that need what comes later, and maxima, are taken apart", "[column_sums]") {
  Summed later({2, 32, 16, 16}, 48, 3, false);
  const ValueId scaled = later.b.one("mul", {later.others, later.b.one("amax", {later.convolved}, {{"dim", std::vector<ir::Dim>{0, 1, 2, 3}}, {"keepdim", true}})});
  later.give(later.sum(later.b.one("mul", {later.convolved, scaled})));
  CHECK(later.difference() == "");
  Summed largest({2, 32, 16, 16}, 48, 3, false);
  largest.give(largest.b.one("amax", {largest.convolved}, {{"dim", std::vector<ir::Dim>{0, 2, 3}}, {"keepdim", false}}));
  CHECK(largest.summed_products() == 0);
  CHECK(largest.difference() == "");
}
