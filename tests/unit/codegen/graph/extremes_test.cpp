// Largest elements of windows, with and without their places.
#include <algorithm>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

TEST_CASE("largest elements of windows are found once with their places", "[extremes]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main (%x: f32[2, 3, 9, 8]) {
    %m: f32[2, 3, 4, 3] = max_pool(%x) {dilation = [1, 1], kernel_size = [3, 3], padding = [0, 0], stride = [2, 2]}
    %r: f32[2, 3, 4, 3] = relu(%m)
    %v: f32[2, 3, 4, 3], %p: i64[2, 3, 4, 3] = max_pool_with_indices(%x) {dilation = [1, 1], kernel_size = [3, 3], padding = [0, 0], stride = [2, 2]}
    %o: f32[2, 3, 8, 7] = max_pool(%x) {dilation = [1, 1], kernel_size = [2, 2], padding = [0, 0], stride = [1, 1]}
    return %r, %p, %o
  })");
  const auto [tensors, views] = llvm_test::random_inputs(graph);
  CHECK(llvm_test::difference(graph, views).value_or("") == "");
  std::size_t reductions = 0;
  const auto program = llvm_test::compile(graph);
  for (const codegen::Step& step : program->plan().steps)
    if (const auto* kernel = std::get_if<codegen::KernelStep>(&step)) reductions += kernel->kernel.reductions.size();
  CHECK(reductions == 2);
}
