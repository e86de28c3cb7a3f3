// Which loop lanes run over where the last one is shorter than a vector, and that the results are those of the judge.
#include "catch.h"
#include "decisions/cpu_schedule.h"
#include "unit/llvm/running.h"

using namespace tenon;
using llvm_backend::schedule_of;

namespace {

/// The length of the loop that lanes run over in the only step, of a graph of float32 inputs.
std::int64_t lane_loop_of(const std::string& text, llvm_test::Choice choice = {}) {
  const codegen::Kernel kernel = llvm_test::kernel_of(text, choice);
  REQUIRE_FALSE(schedule_of(kernel).lanes_inside);
  return kernel.outer.back().extent.constant();
}

std::string interleaved(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return fmt::format(R"(graph @main (%x: f32[2, {0}, {1}, {2}]) {{
    %p: f32[2, {0}, {3}, {4}] = pad(%x) {{after = [0, 0, 1, 3], before = [0, 0, 1, 3], mode = "constant", value = 0.0}}
    %t: f32[2, {3}, {4}, {0}] = permute(%p) {{dims = [0, 2, 3, 1]}}
    %y: f32[2, {3}, {4}, {0}] = mul(%t, 2)
    return %y
  }})", channels, height, width, height + 2, width + 6);
}

}  // namespace

TEST_CASE("lanes run along the rows of planes that are interleaved", "[lanes]") {
  CHECK(lane_loop_of(interleaved(3, 5, 64)) == 70);
  CHECK(lane_loop_of(interleaved(3, 5, 64), {.threads = 3}) == 70);
  CHECK(lane_loop_of(interleaved(2, 3, 11)) == 17);
  CHECK(lane_loop_of(interleaved(3, 4, 40), {.width = 32}) == 46);
}

TEST_CASE("lanes run over pixels and their channels where they lie side by side, and where rows are short", "[lanes]") {
  CHECK(lane_loop_of(R"(graph @main (%x: f32[2, 5, 64, 3], %c: f32[3]) {
    %y: f32[2, 5, 64, 3] = mul(%x, %c)
    return %y
  })") == 2 * 5 * 64 * 3);
  CHECK(lane_loop_of(interleaved(3, 5, 1), {.width = 32}) == 3 * 7);
}

TEST_CASE("lanes run over the channels of a reduction whose result has them last", "[lanes]") {
  const auto pooled = [](int channels, int height, int width) {
    return fmt::format(R"(graph @main (%x: f32[2, {1}, {2}, {0}]) {{
      %c: f32[2, {0}, {1}, {2}] = permute(%x) {{dims = [0, 3, 1, 2]}}
      %w: f32[2, {0}, {1}, {2}] = max_pool(%c) {{ceil_mode = false, dilation = [1, 1], kernel_size = [3, 3], padding = [1, 1], stride = [1, 1]}}
      %t: f32[2, {1}, {2}, {0}] = permute(%w) {{dims = [0, 2, 3, 1]}}
      %y: f32[2, {1}, {2}, {0}] = mul(%t, 2)
      return %y
    }})", channels, height, width);
  };
  CHECK(lane_loop_of(pooled(40, 6, 7)) == 40);
  CHECK(lane_loop_of(pooled(20, 20, 20), {.threads = 3}) == 20);
}

TEST_CASE("rows are scattered in runs of lanes", "[lanes]") {
  const auto scatter_of = [](const ir::Graph& graph) {
    const auto program = llvm_test::compile(graph);
    return std::get<codegen::KernelStep>(program->plan().steps.back()).kernel;
  };
  ops::HostTensor places = llvm_test::random_tensor(DType::i64, {5}, 0);
  for (int i = 0; i < 5; ++i) places.as<std::int64_t>()[i] = i % 3;
  for (const char* dtype : {"f32", "i32"}) {
    for (const int columns : {3, 16, 75, 200}) {  // 3 fill no vector of any processor by half
      const ir::Graph graph = llvm_test::parse(fmt::format(R"(graph @main (%x: {0}[3, {1}], %i: i64[5], %v: {0}[5, {1}]) {{
        %y: {0}[3, {1}] = index_add(%x, %i, %v) {{alpha = 1, dim = 0}}
        return %y
      }})", dtype, columns));
      auto [tensors, views] = llvm_test::random_inputs(graph);
      views[1] = places.view();
      INFO(dtype << " " << columns);
      CHECK(llvm_test::difference(graph, views).value_or("") == "");
      CHECK(schedule_of(scatter_of(graph)).in_runs == (columns > 3));
    }
  }
  const ir::Graph columns = llvm_test::parse(R"(graph @main (%x: f32[3, 40], %i: i64[5], %v: f32[3, 5]) {
    %y: f32[3, 40] = index_add(%x, %i, %v) {alpha = 1, dim = 1}
    return %y
  })");
  CHECK_FALSE(schedule_of(scatter_of(columns)).in_runs);
}

TEST_CASE("what is moved is not rounded, and what is stored is rounded once", "[lanes]") {
  for (const char* dtype : {"bf16", "f16"}) {
    const ir::Graph graph = llvm_test::parse(fmt::format(R"(graph @main (%x: {0}[20, 40], %y: {0}[20, 40]) {{
      %c: {0}[40, 40] = cat(%x, %y) {{dim = 0}}
      %p: {0}[42, 40] = pad(%c) {{after = [1, 0], before = [1, 0], mode = "constant", value = 0.5}}
      return %p
    }})", dtype));
    const auto [tensors, views] = llvm_test::random_inputs(graph);
    CHECK(llvm_test::difference(graph, views).value_or("") == "");
    llvm_test::take_log();
    llvm_test::compile(graph, {.log = true});
    std::string code;
    for (const std::string& line : llvm_test::take_log()) code += line;
    INFO(code);
    CHECK(code.find("fcmp uno") == std::string::npos);
    CHECK(code.find("fptrunc") == std::string::npos);
  }
}

TEST_CASE("tiles of a product are finished in vectors that fill them", "[lanes]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main (%a: f32[96, 64], %b: f32[64, 96], %c: f32[96]) {
    %p: f32[96, 96] = mm(%a, %b)
    %s: f32[96, 96] = add(%p, %c)
    %y: f32[96, 96] = relu(%s)
    return %y
  })");
  for (const unsigned width : {16u, 32u}) {
    llvm_test::take_log();
    llvm_test::compile(graph, {.width = width, .log = true});
    std::string code;
    for (const std::string& line : llvm_test::take_log()) code += line;
    const unsigned tile = width == 16 ? 8 : 16;
    CHECK(code.find(fmt::format("<{} x float>", tile)) != std::string::npos);
    CHECK(code.find(fmt::format("<{} x float>", 2 * tile)) == std::string::npos);
  }
}
