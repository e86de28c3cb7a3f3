// Products of matrices on tensor cores, thread by thread on the CPU, against the judge.
#include "catch.h"

#include <bit>
#include <cmath>
#include <limits>

#include "unit/cuda/host_grid.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

ptx_test::ScheduledGraph scheduled(const std::string& text, const cuda::ProductChoices& choices = {}) { return ptx_test::schedule_graph(llvm_test::parse(text), true, choices); }

bool is_multiplied(const ptx_test::ScheduledGraph& graph) { return std::ranges::any_of(graph.kernels, [](const auto& kernel) { return kernel.schedule.product.has_value(); }); }

/// What differs from the judge, or "". `tolerance` in those of the dtype.
std::string fault_of(const std::string& text, double tolerance = 8, const cuda::ProductChoices& choices = {}) {
  const ir::Graph graph = llvm_test::parse(text);
  const auto [tensors, views] = llvm_test::random_inputs(graph);
  const auto made = scheduled(text, choices);
  if (!is_multiplied(made)) return "nothing is multiplied by tensor cores";
  return ptx_test::fault_on_host(made, graph, views, tolerance);
}

}  // namespace

TEST_CASE("products of matrices in every layout", "[ptx][products]") {
  for (const char* dtype : {"f32", "f16", "bf16"})
    for (const auto& [m, k, n] : {std::tuple{64, 128, 64}, std::tuple{70, 72, 66}, std::tuple{33, 301, 45}})
      for (const bool left : {false, true})
        for (const bool right : {false, true}) {
          const auto sizes = [](bool moved, int rows, int columns) { return moved ? fmt::format("{}, {}", columns, rows) : fmt::format("{}, {}", rows, columns); };
          const std::string text = fmt::format("graph @main (%x: {0}[{1}], %y: {0}[{2}]) {{\n{3}{4}  %z: {0}[{5}, {6}] = matmul({7}, {8})\n  return %z\n}}", dtype, sizes(left, m, k), sizes(right, k, n),
                                               left ? fmt::format("  %a: {}[{}, {}] = permute(%x) {{dims = [1, 0]}}\n", dtype, m, k) : "",
                                               right ? fmt::format("  %b: {}[{}, {}] = permute(%y) {{dims = [1, 0]}}\n", dtype, k, n) : "", m, n, left ? "%a" : "%x", right ? "%b" : "%y");
          INFO(text);
          CHECK(fault_of(text, 64) == "");
        }
}

TEST_CASE("what follows a product is in its kernel", "[ptx][products]") {
  const std::string text = R"(graph @main (%x: f32[96, 160], %w: f32[160, 72], %b: f32[72], %r: f32[96, 72]) {
    %z: f32[96, 72] = matmul(%x, %w)
    %a: f32[96, 72] = add(%z, %b)
    %t: f32[96, 72] = tanh(%a)
    %s: f32[96, 72] = add(%t, %r)
    return %s
  })";
  CHECK(fault_of(text, 16) == "");
  CHECK(scheduled(text).kernels.size() == 1);
  CHECK(fault_of(R"(graph @main (%x: bf16[96, 160], %w: bf16[160, 72], %b: bf16[72]) {
    %z: bf16[96, 72] = matmul(%x, %w)
    %a: bf16[96, 72] = add(%z, %b)
    %y: f32[96, 72] = _to_copy(%a) {dtype = f32}
    return %y
  })", 16000) == "");
}

TEST_CASE("a long sum with few results is done in parts", "[ptx][products]") {
  const std::string text = R"(graph @main (%x: f32[48, 2048], %w: f32[2048, 40]) {
    %z: f32[48, 40] = matmul(%x, %w)
    %y: f32[48, 40] = tanh(%z)
    return %y
  })";
  CHECK(scheduled(text).kernels.size() == 2);
  CHECK(fault_of(text, 64) == "");
}

TEST_CASE("the gradient of few weights over many pictures is done in parts, beside each other in clusters too", "[ptx][products]") {
  const auto gradient = [](int pictures, int side, int channels, int results) {
    return fmt::format(R"(graph @main (%x: f32[{0}, {1}, {1}, {2}], %g: f32[{0}, {1}, {1}, {3}]) {{
      %y: f32[{3}, 3, 3, {2}] = conv_weight_sum_channels_last(%x, %g) {{before = [1, 1], dilation = [1, 1], groups = 1, kernel = [3, 3], stride = [1, 1]}}
      return %y
    }})", pictures, side, channels, results);
  };
  CHECK(scheduled(gradient(2, 32, 8, 16)).kernels.size() == 2);
  CHECK(fault_of(gradient(2, 32, 8, 16), 64) == "");
  const auto parts = scheduled(gradient(16, 32, 64, 64), {.clusters = true});
  REQUIRE(parts.kernels.size() == 2);
  REQUIRE(parts.kernels[0].schedule.product);
  CHECK(parts.kernels[0].schedule.product->cluster == 8);
  CHECK(parts.kernels[0].schedule.product->batches() == 2);
  CHECK(scheduled(gradient(16, 32, 256, 256), {.clusters = true}).kernels.size() == 1);
}

TEST_CASE("products of batches", "[ptx][products]") {
  for (const char* dtype : {"f32", "f16"})
    CHECK(fault_of(fmt::format("graph @main (%x: {0}[3, 64, 80], %y: {0}[3, 80, 40]) {{\n  %z: {0}[3, 64, 40] = matmul(%x, %y)\n  return %z\n}}", dtype), 64) == "");
}

TEST_CASE("convolutions are products over windows", "[ptx][products]") {
  for (const char* dtype : {"f32", "f16"})
    for (const auto& [channels, kernel, stride, padding] : {std::tuple{32, 3, 1, 1}, std::tuple{64, 1, 2, 0}, std::tuple{24, 3, 2, 1}, std::tuple{3, 7, 2, 3}}) {
      const int side = 24, out = (side + 2 * padding - kernel) / stride + 1;
      const std::string last = fmt::format(R"(graph @main (%x: {0}[2, {1}, {1}, {2}], %w: {0}[40, {3}, {3}, {2}], %b: {0}[40], %r: {0}[2, {4}, {4}, 40]) {{
        %p: {0}[2, {2}, {1}, {1}] = permute(%x) {{dims = [0, 3, 1, 2]}}
        %q: {0}[40, {2}, {3}, {3}] = permute(%w) {{dims = [0, 3, 1, 2]}}
        %c: {0}[2, 40, {4}, {4}] = conv_sum(%p, %q) {{after = [{6}, {6}], before = [{6}, {6}], dilation = [1, 1], groups = 1, stride = [{5}, {5}]}}
        %m: {0}[2, {4}, {4}, 40] = permute(%c) {{dims = [0, 2, 3, 1]}}
        %a: {0}[2, {4}, {4}, 40] = add(%m, %b)
        %s: {0}[2, {4}, {4}, 40] = add(%a, %r)
        %y: {0}[2, {4}, {4}, 40] = relu(%s)
        return %y
      }})", dtype, side, channels, kernel, out, stride, padding);
      INFO(last);
      CHECK(fault_of(last, 128) == "");
      const std::string first = fmt::format(R"(graph @main (%x: {0}[2, {2}, {1}, {1}], %w: {0}[40, {2}, {3}, {3}]) {{
        %y: {0}[2, 40, {4}, {4}] = conv_sum(%x, %w) {{after = [{6}, {6}], before = [{6}, {6}], dilation = [1, 1], groups = 1, stride = [{5}, {5}]}}
        return %y
      }})", dtype, side, channels, kernel, out, stride, padding);
      INFO(first);
      CHECK(fault_of(first, 128) == "");
    }
}

TEST_CASE("gradients of convolutions whose channels lie last", "[ptx][products]") {
  for (const auto& [channels, kernel, stride, padding] : {std::tuple{32, 3, 1, 1}, std::tuple{64, 1, 2, 0}, std::tuple{24, 3, 2, 1}, std::tuple{3, 7, 2, 3}}) {
    const int side = 12, out = (side + 2 * padding - kernel) / stride + 1;
    const std::string of_weight = fmt::format(R"(graph @main (%x: f32[2, {0}, {0}, {1}], %g: f32[2, {3}, {3}, 72]) {{
      %y: f32[72, {2}, {2}, {1}] = conv_weight_sum_channels_last(%x, %g) {{before = [{5}, {5}], dilation = [1, 1], groups = 1, kernel = [{2}, {2}], stride = [{4}, {4}]}}
      %z: f32[72, {1}, {2}, {2}] = permute(%y) {{dims = [0, 3, 1, 2]}}
      %s: f32[72, {1}, {2}, {2}] = tanh(%z)
      return %z, %s
    }})", side, channels, kernel, out, stride, padding);
    INFO(of_weight);
    CHECK(fault_of(of_weight, 128) == "");
    const std::string of_input = fmt::format(R"(graph @main (%w: f32[72, {2}, {2}, {1}], %g: f32[2, {3}, {3}, 72]) {{
      %y: f32[2, {0}, {0}, {1}] = conv_input_sum_channels_last(%w, %g) {{before = [{5}, {5}], dilation = [1, 1], groups = 1, sizes = [{0}, {0}], stride = [{4}, {4}]}}
      %z: f32[2, {0}, {0}, {1}] = tanh(%y)
      return %z
    }})", side, channels, kernel, out, stride, padding);
    INFO(of_input);
    if (channels > 8) CHECK(fault_of(of_input, 128) == "");
  }
}

TEST_CASE("products of what is no finite number, or nearly none", "[ptx][products]") {
  const ir::Graph graph = llvm_test::parse("graph @main (%x: f32[64, 96], %y: f32[96, 64]) {\n  %z: f32[64, 64] = matmul(%x, %y)\n  return %z\n}");
  auto [tensors, views] = llvm_test::random_inputs(graph);
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::denorm_min();
  float *x = tensors[0].as<float>(), *y = tensors[1].as<float>();
  const float odd[] = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), kMost, -kMost, kLeast, 1e-40f, 0.0f};
  for (int i = 0; i < 8; ++i) x[i * 5 * 96 + i * 11] = odd[i];
  y[3 * 64 + 7] = kInfinity, y[50 * 64 + 8] = kMost / 1024;
  for (int k = 0; k < 96; ++k) y[k * 64 + 9] = 0.25f;   // so that products of the largest numbers are finite
  CHECK(ptx_test::fault_on_host(ptx_test::schedule_graph(graph.clone()), graph, views, 16) == "");
}

TEST_CASE("operands of float32 are rounded to tf32 where that is asked for", "[ptx][products]") {
  const ir::Graph graph = llvm_test::parse("graph @main (%x: f32[64, 96], %y: f32[96, 64]) {\n  %z: f32[64, 64] = matmul(%x, %y)\n  return %z\n}");
  const auto [tensors, views] = llvm_test::random_inputs(graph);
  const auto want = ops::evaluate(graph, views, ops::Precision::judge);
  const auto error_of = [&](bool rounds) {
    const auto got = ptx_test::run_on_host(ptx_test::schedule_graph(graph.clone(), true, {.rounding = {.products = rounds}}), views);
    double error = 0, all = 0;
    for (int i = 0; i < 64 * 64; ++i) error += std::pow(got[0].as<float>()[i] - want[0].as<double>()[i], 2), all += std::pow(want[0].as<double>()[i], 2);
    return std::sqrt(error / all);
  };
  CHECK(error_of(false) < 4e-7);
  CHECK(error_of(true) > 1e-5);
  CHECK(error_of(true) < 4e-4);
}

TEST_CASE("convolutions and matrix products are rounded each by a choice of their own", "[ptx][products]") {
  const std::string product = "graph @main (%x: f32[64, 96], %y: f32[96, 64]) {\n  %z: f32[64, 64] = matmul(%x, %y)\n  return %z\n}";
  const std::string convolution = R"(graph @main (%x: f32[2, 16, 12, 12], %w: f32[40, 16, 3, 3]) {
    %y: f32[2, 40, 12, 12] = conv_sum(%x, %w) {after = [1, 1], before = [1, 1], dilation = [1, 1], groups = 1, stride = [1, 1]}
    return %y
  })";
  const auto rounds = [](const std::string& text, cuda::Rounding rounding) {
    return std::ranges::any_of(ptx_test::schedule_graph(llvm_test::parse(text), true, {.rounding = rounding}).kernels, [](const auto& kernel) { return kernel.schedule.product && kernel.schedule.product->rounds; });
  };
  CHECK(rounds(product, {.products = true}));
  CHECK(!rounds(product, {.convolutions = true}));
  CHECK(rounds(convolution, {.convolutions = true}));
  CHECK(!rounds(convolution, {.products = true}));
}

TEST_CASE("operands that are rounded and no finite numbers stay what they are", "[ptx][products]") {
  const ir::Graph graph = llvm_test::parse("graph @main (%x: f32[64, 96], %y: f32[96, 64]) {\n  %z: f32[64, 64] = matmul(%x, %y)\n  return %z\n}");
  auto [tensors, views] = llvm_test::random_inputs(graph);
  float* x = tensors[0].as<float>();
  x[5] = std::numeric_limits<float>::infinity(), x[96 + 7] = -std::numeric_limits<float>::infinity();
  x[2 * 96] = std::bit_cast<float>(0x7fffffffu), x[3 * 96] = std::bit_cast<float>(0xffffffffu);  // NaNs to which an addition would carry
  const auto got = ptx_test::run_on_host(ptx_test::schedule_graph(graph.clone(), true, {.rounding = {.products = true}}), views);
  const float* z = got[0].as<float>();
  for (int column = 0; column < 64; ++column) {
    CHECK(std::isinf(z[column]));
    CHECK(std::isinf(z[64 + column]));
    CHECK(std::isnan(z[2 * 64 + column]));
    CHECK(std::isnan(z[3 * 64 + column]));
    CHECK(std::isfinite(z[4 * 64 + column]));
  }
}

TEST_CASE("rows that lie apart are rows of one product", "[ptx][products]") {
  CHECK(fault_of(R"(graph @main (%x: f32[16, 64, 8, 8], %w: f32[32, 64, 1, 1]) {
    %y: f32[16, 32, 4, 4] = conv_sum(%x, %w) {after = [0, 0], before = [0, 0], dilation = [1, 1], groups = 1, stride = [2, 2]}
    return %y
  })", 64) == "");
}

TEST_CASE("what follows a convolution is in its kernel, where channels lie last", "[ptx][products]") {
  const std::string text = R"(graph @main (%x: f32[2, 8, 8, 64], %w: f32[64, 3, 3, 64], %m: f32[64], %v: f32[64], %g: f32[64], %b: f32[64]) {
    %c: f32[2, 8, 8, 64] = convolution_channels_last(%x, %w) {dilation = [1, 1], groups = 1, padding = [1, 1], stride = [1, 1]}
    %p: f32[2, 64, 8, 8] = permute(%c) {dims = [0, 3, 1, 2]}
    %n: f32[2, 64, 8, 8] = batch_norm(%p, %m, %v, %g, %b) {eps = 1e-05}
    %q: f32[2, 64, 8, 8] = permute(%x) {dims = [0, 3, 1, 2]}
    %s: f32[2, 64, 8, 8] = add(%q, %n)
    %r: f32[2, 64, 8, 8] = relu(%s)
    %y: f32[2, 8, 8, 64] = permute(%r) {dims = [0, 2, 3, 1]}
    return %y
  })";
  CHECK(scheduled(text).kernels.size() == 1);
  CHECK(fault_of(text, 256) == "");
}

TEST_CASE("four warps multiply together where the right operand lies as they read it", "[ptx][products]") {
  const auto is_wide = [](const auto& kernel) { return kernel.schedule.product && kernel.schedule.product->by_warpgroups; };
  const auto rows_in_memory = [](const auto& kernel) { return kernel.schedule.product && kernel.schedule.product->a.swizzled; };
  for (const char* dtype : {"f16", "bf16"})
    for (const bool moved : {false, true})
      for (const auto& [m, k, n] : {std::tuple{64, 128, 64}, std::tuple{200, 72, 136}, std::tuple{33, 328, 40}}) {
        const std::string left = moved ? fmt::format("{}, {}", k, m) : fmt::format("{}, {}", m, k);
        const std::string text = fmt::format("graph @main (%x: {0}[{1}], %y: {0}[{4}, {3}]) {{\n{5}  %b: {0}[{3}, {4}] = permute(%y) {{dims = [1, 0]}}\n  %z: {0}[{2}, {4}] = matmul({6}, %b)\n  return %z\n}}", dtype, left, m, k, n,
                                             moved ? fmt::format("  %a: {}[{}, {}] = permute(%x) {{dims = [1, 0]}}\n", dtype, m, k) : "", moved ? "%a" : "%x");
        INFO(text);
        const auto made = scheduled(text, {.warpgroups = true});
        CHECK(std::ranges::any_of(made.kernels, is_wide));
        CHECK(std::ranges::any_of(made.kernels, rows_in_memory) == !moved);
        CHECK(fault_of(text, 64, {.warpgroups = true}) == "");
      }
}

namespace {

/// A convolution whose weights a kernel lays out, and whose picture `%h` another one makes.
std::string convolution_of(int channels, int results, int side, const std::string& picture, const std::string& residual) {
  return fmt::format(R"(graph @main (%x: f32[2, {1}, {1}, {0}], %w: f32[{2}, {0}, 3, 3], %r: f32[2, {1}, {1}, {2}]) {{
    %h: f32[2, {1}, {1}, {0}] = {3}
    %v: f32[{2}, 3, 3, {0}] = permute(%w) {{dims = [0, 2, 3, 1]}}
    %c: f32[2, {1}, {1}, {2}] = convolution_channels_last(%h, %v) {{padding = [1, 1], stride = [1, 1]}}
    %y: f32[2, {1}, {1}, {2}] = add(%c, {4})
    return %y
  }})", channels, side, results, picture, residual);
}

double relative_error(const ops::HostTensor& got, const ops::HostTensor& want, std::int64_t count) {
  double error = 0, all = 0;
  for (std::int64_t i = 0; i < count; ++i) error += std::pow(got.as<float>()[i] - want.as<double>()[i], 2), all += std::pow(want.as<double>()[i], 2);
  return std::sqrt(error / all);
}

}  // namespace

TEST_CASE("four warps multiply float32 that is not rounded, as three products of what threads lay out for them", "[ptx][products]") {
  for (const bool left_moved : {false, true})
    for (const bool right_moved : {false, true})
      for (const auto& [m, k, n] : {std::tuple{64, 672, 64}, std::tuple{200, 700, 24}}) {
        const auto operand = [](const std::string& name, bool moved, int rows, int columns) {
          const std::string made = fmt::format("  %{0}: f32[{1}, {2}] = permute(%{0}t) {{dims = [1, 0]}}\n", name, rows, columns);
          return moved ? std::pair(fmt::format("%{}t: f32[{}, {}]", name, columns, rows), made) : std::pair(fmt::format("%{}: f32[{}, {}]", name, rows, columns), std::string());
        };
        const auto [x, left] = operand("x", left_moved, m, k);
        const auto [y, right] = operand("y", right_moved, k, n);
        const std::string text = fmt::format("graph @main ({}, {}) {{\n{}{}  %z: f32[{}, {}] = matmul(%x, %y)\n  return %z\n}}", x, y, left, right, m, n);
        INFO(text);
        const ir::Graph graph = llvm_test::parse(text);
        const auto [tensors, views] = llvm_test::random_inputs(graph);
        auto made = ptx_test::schedule_graph(graph.clone(), true, {.warpgroups = true});
        cuda::Schedule& schedule = made.kernels[0].schedule;
        REQUIRE(schedule.product);
        CHECK(schedule.product->lays_out);
        schedule.product->cluster = 1;  // no block of the host reads another one's memory
        schedule.units = codegen::Dim(schedule.product->blocks());
        const auto got = ptx_test::run_on_host(made, views), want = ops::evaluate(graph, views, ops::Precision::judge);
        CHECK(relative_error(got[0], want[0], std::int64_t{m} * n) < 5e-7);
      }
}

TEST_CASE("weights that one kernel lays out are rounded there, or none of them is", "[ptx][products]") {
  const auto rounded = [](const std::string& outputs) {
    const std::string text = R"(graph @main (%x: f32[2, 12, 12, 32], %w: f32[32, 32, 3, 3], %z: f32[32, 32, 3, 3]) {
      %v: f32[32, 3, 3, 32] = permute(%w) {dims = [0, 2, 3, 1]}
      %u: f32[32, 3, 3, 32] = permute(%z) {dims = [0, 2, 3, 1]}
      %a: f32[2, 12, 12, 32] = convolution_channels_last(%x, %v) {padding = [1, 1], stride = [1, 1]}
      %b: f32[2, 12, 12, 32] = convolution_channels_last(%a, %u) {padding = [1, 1], stride = [1, 1]}
      return )" + outputs + "\n}";
    const auto made = scheduled(text, {.rounding = {.convolutions = true}, .warpgroups = true});
    std::vector<bool> found;
    for (const auto& kernel : made.kernels)
      if (kernel.schedule.product) found.push_back(kernel.schedule.product->b.rounded);
    CHECK(std::ranges::any_of(made.kernels, [](const auto& kernel) { return kernel.schedule.runs == 2; }));
    return found;
  };
  CHECK(rounded("%b") == std::vector<bool>{true, true});
  CHECK(rounded("%b, %u") == std::vector<bool>{false, false});
}

TEST_CASE("what only products read that round it is rounded where it is written", "[ptx][products]") {
  const cuda::ProductChoices rounding{.rounding = {.convolutions = true}, .warpgroups = true};
  for (const auto& [channels, results, side] : {std::tuple{32, 64, 12}})
    for (const bool is_shared : {false, true}) {
      // Running sums: no kernel of a product takes them in.
      const std::string text = convolution_of(channels, is_shared ? channels : results, side, "cumsum(%x) {dim = 0}", is_shared ? "%h" : "%r");
      INFO(text);
      const ir::Graph graph = llvm_test::parse(text);
      const auto [tensors, views] = llvm_test::random_inputs(graph);
      const auto made = ptx_test::schedule_graph(graph.clone(), true, rounding);
      const auto product = std::ranges::find_if(made.kernels, [](const auto& kernel) { return kernel.schedule.product.has_value(); });
      REQUIRE(product != made.kernels.end());
      CHECK(product->schedule.product->by_warpgroups);
      CHECK(product->schedule.product->b.rounded);
      CHECK(product->schedule.product->a.rounded == !is_shared);
      const auto got = ptx_test::run_on_host(made, views);
      const auto want = ops::evaluate(graph, views, ops::Precision::judge);
      const double error = relative_error(got[0], want[0], std::int64_t{2} * side * side * (is_shared ? channels : results));
      CHECK(error > 1e-6);
      CHECK(error < 4e-4);
    }
}

TEST_CASE("what follows a convolution up to a pooling is in its kernel", "[ptx][products]") {
  const std::string text = R"(graph @main (%x: f32[2, 16, 16, 32], %w: f32[40, 3, 3, 32], %b: f32[40, 1, 1]) {
    %c: f32[2, 16, 16, 40] = convolution_channels_last(%x, %w) {padding = [1, 1], stride = [1, 1]}
    %p: f32[2, 40, 16, 16] = permute(%c) {dims = [0, 3, 1, 2]}
    %a: f32[2, 40, 16, 16] = add(%p, %b)
    %r: f32[2, 40, 16, 16] = relu(%a)
    %m: f32[2, 40, 8, 8] = max_pool(%r) {ceil_mode = false, dilation = [1, 1], kernel_size = [3, 3], padding = [1, 1], stride = [2, 2]}
    return %m
  })";
  const auto made = scheduled(text);
  REQUIRE(made.kernels.size() == 2);
  CHECK(made.kernels[0].schedule.product);
  CHECK(made.kernels[0].step.nodes.size() >= 3);
  CHECK(fault_of(text, 128) == "");
}

TEST_CASE("two convolutions that are added up have one end", "[ptx][products]") {
  CHECK(fault_of(R"(graph @main (%x: f32[2, 8, 8, 32], %v: f32[40, 3, 3, 32], %w: f32[40, 1, 1, 32]) {
    %c: f32[2, 8, 8, 40] = convolution_channels_last(%x, %v) {padding = [1, 1], stride = [1, 1]}
    %d: f32[2, 8, 8, 40] = convolution_channels_last(%x, %w) {padding = [0, 0], stride = [1, 1]}
    %p: f32[2, 40, 8, 8] = permute(%c) {dims = [0, 3, 1, 2]}
    %q: f32[2, 40, 8, 8] = permute(%d) {dims = [0, 3, 1, 2]}
    %a: f32[2, 40, 8, 8] = add(%p, %q)
    %r: f32[2, 40, 8, 8] = relu(%a)
    %m: f32[2, 40] = amax(%r) {dim = [2, 3], keepdim = false}
    return %m
  })", 128) == "");
}

TEST_CASE("weights whose channels are moved to the end are read side by side", "[ptx]") {
  const std::string text = "graph @main (%w: f32[24, 16, 3, 3]) {\n  %y: f32[24, 3, 3, 16] = permute(%w) {dims = [0, 2, 3, 1]}\n  return %y\n}";
  const auto made = scheduled(text);
  REQUIRE(made.kernels.size() == 1);
  CHECK(made.kernels[0].step.kernel.outer.back().extent == ir::Dim(9));
  const auto [tensors, views] = llvm_test::random_inputs(llvm_test::parse(text));
  CHECK(ptx_test::fault_on_host(made, llvm_test::parse(text), views, 0) == "");
}
