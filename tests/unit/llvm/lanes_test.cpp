// Which loop lanes run over where the last one is shorter than a vector, and that the results are those of the judge.
#include "catch.h"
#include "running.h"

using namespace tenon;

namespace {

/// The length of the loop that lanes run over in the only step, of a graph of float32 inputs.
std::int64_t lane_loop_of(const std::string& text, llvm_test::Choice choice = {}) {
  const ir::Graph graph = llvm_test::parse(text);
  const auto [tensors, views] = llvm_test::random_inputs(graph);
  INFO(text);
  CHECK(llvm_test::difference(graph, views, choice).value_or("") == "");
  const auto program = llvm_test::compile(graph, choice);
  REQUIRE(program->plan().steps.size() == 1);
  const codegen::Kernel& kernel = std::get<codegen::KernelStep>(program->plan().steps[0]).kernel;
  REQUIRE_FALSE(kernel.lanes_inside);
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
