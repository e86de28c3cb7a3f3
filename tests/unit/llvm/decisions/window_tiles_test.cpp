// Sums over windows whose neighbours are computed together: depthwise convolutions of many shapes.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

struct Depthwise {
  std::int64_t images, channels, height, width, taps_h, taps_w, stride = 1, padding = 0, dilation = 1;
  std::int64_t filters = 1;  // a channel

  std::int64_t places(std::int64_t size, std::int64_t taps) const { return (size + 2 * padding - (taps - 1) * dilation - 1) / stride + 1; }
};

/// A filter or more for each channel; a residual and relu behind it.
ir::Graph graph_of(const Depthwise& c, DType dtype) {
  const std::string of = std::string(name_of(dtype)), pad = fmt::format("[{0}, {0}]", c.padding);
  const std::string result = fmt::format("{}[{}, {}, {}, {}]", of, c.images, c.channels * c.filters, c.places(c.height, c.taps_h), c.places(c.width, c.taps_w));
  return llvm_test::parse(fmt::format(R"(graph @main (%x: {0}[{1}, {2}, {3}, {4}], %k: {0}[{5}, 1, {6}, {7}], %b: {8}) {{
    %y: {8} = conv_sum(%x, %k) {{after = {9}, before = {9}, dilation = [{10}, {10}], groups = {2}, stride = [{11}, {11}]}}
    %z: {8} = add(%y, %b)
    %r: {8} = relu(%z)
    return %r, %y
  }})",
                                      of, c.images, c.channels, c.height, c.width, c.channels * c.filters, c.taps_h, c.taps_w, result, pad, c.dilation, c.stride));
}

std::string difference(const Depthwise& c, DType dtype, const llvm_test::Choice& choice) {
  const ir::Graph graph = graph_of(c, dtype);
  const llvm_test::Inputs inputs = llvm_test::random_inputs(graph);
  return llvm_test::difference(graph, inputs.views, choice, 60).value_or("");
}

/// The most sums that one of the kernels computes at a point.
std::size_t most_sums(const Depthwise& c) {
  std::size_t most = 0;
  const auto program = llvm_test::compile(graph_of(c, DType::f32), {.width = 64});
  for (const codegen::Step& step : program->plan().steps)
    if (const auto* kernel = std::get_if<codegen::KernelStep>(&step)) most = std::max(most, kernel->kernel.reductions.size());
  return most;
}

}  // namespace

TEST_CASE("depthwise convolutions have the right numbers", "[windows]") {
  const Depthwise cases[] = {{2, 16, 20, 20, 5, 5, 1, 2}, {1, 35, 13, 17, 7, 7, 1, 3},  {3, 64, 11, 12, 5, 5, 2, 2}, {2, 33, 15, 14, 5, 7, 1, 0, 2},
                             {2, 100, 9, 9, 6, 5, 3, 4},  {2, 32, 10, 10, 5, 5, 1, 2, 1, 2}, {2, 24, 16, 16, 3, 3, 1, 1}, {1, 40, 12, 24, 1, 9, 1, 4}};
  for (const Depthwise& c : cases)
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
      for (const unsigned width : {0u, 32u, 16u}) {
        INFO(c.images << " x " << c.channels << " x " << c.height << " x " << c.width << ", taps " << c.taps_h << " x " << c.taps_w << ", stride " << c.stride << ", padding " << c.padding << ", dilation "
                      << c.dilation << ", filters " << c.filters << ", " << name_of(dtype) << ", width " << width);
        CHECK(difference(c, dtype, {.width = width, .threads = 2}) == "");
      }
}

TEST_CASE("neighbours that share windows are computed together, as many as divide a row", "[windows]") {
  CHECK(most_sums({2, 64, 20, 20, 5, 5, 1, 2}) == 5);
  CHECK(most_sums({2, 64, 16, 16, 5, 5, 1, 2}) == 8);
  CHECK(most_sums({2, 64, 13, 13, 5, 5, 1, 2}) == 1);
}
