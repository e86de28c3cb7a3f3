// Small kernels that differ in their sizes alone take them with the call.
#include <fmt/format.h>

#include <cstddef>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// Rows of a triangle, each doubled and summed.
ir::Graph triangle(int rows) {
  std::string text = "graph @main (%x: f32[40, 40]) {\n", results;
  for (int i = 2; i < 2 + rows; ++i) {
    text += fmt::format("  %r{0}: f32[40] = select(%x) {{dim = 0, index = {0}}}\n  %c{0}: f32[{0}] = slice(%r{0}) {{dim = 0, end = {0}, start = 0, step = 1}}\n", i);
    text += fmt::format("  %m{0}: f32[{0}] = mul(%c{0}, 2)\n  %s{0}: f32[] = sum(%m{0}) {{dim = [0], dtype = f32, keepdim = false}}\n", i);
    results += fmt::format("{}%s{}, %m{}", i > 2 ? ", " : "", i, i);
  }
  return llvm_test::parse(text + "  return " + results + "\n}");
}

/// How many functions the graph compiles, after its results were compared.
std::ptrdiff_t compiled(const ir::Graph& graph) {
  const auto [tensors, views] = llvm_test::random_inputs(graph);
  CHECK(llvm_test::difference(graph, views, {}, 40).value_or("") == "");
  llvm_test::take_log();
  llvm_test::compile(graph, {.width = 16, .log = true});
  const auto log = llvm_test::take_log();
  std::ptrdiff_t count = 0;
  for (const std::string& line : log)
    for (auto at = line.find("define void"); at != std::string::npos; at = line.find("define void", at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("rows of a triangle are few kernels", "[sizes]") { CHECK(compiled(triangle(30)) < 10); }

TEST_CASE("sizes divided from a symbol are planned for what its hint makes of them", "[sizes]") {
  const ir::Graph graph = llvm_test::parse(
      "graph @frames [s0: 1024..1048576 ~ 24000] (%x: f32[floor_div(s0, 128) - 1, 100], %y: f32[100, 60]) {\n"
      "  %z: f32[floor_div(s0, 128) - 1, 60] = mm(%x, %y)\n  return %z\n}");
  llvm_test::take_log();
  llvm_test::compile(graph, {.log = true});
  bool product = false;
  for (const std::string& line : llvm_test::take_log()) product |= line.find("%z = mm is a matrix product") != std::string::npos;
  CHECK(product);
}

TEST_CASE("vectors run over channels that lie last in pictures of unknown sizes", "[sizes]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main [s0, s1] (%x: f32[2, s0, s1, 48], %k: f32[48]) {
    %p: f32[2, 48, s0, s1] = permute(%x) {dims = [0, 3, 1, 2]}
    %r: f32[48, 1, 1] = reshape(%k) {shape = [48, 1, 1]}
    %m: f32[2, 48, s0, s1] = mul(%p, %r)
    %y: f32[2, s0, s1, 48] = permute(%m) {dims = [0, 2, 3, 1]}
    return %y
  })");
  const auto program = llvm_test::compile(graph);
  REQUIRE(program->plan().steps.size() == 1);
  const auto& kernel = std::get<codegen::KernelStep>(program->plan().steps[0]).kernel;
  CHECK(kernel.outer.back().extent == ir::Dim(48));
  for (const auto& [height, width] : {std::pair{5, 7}, std::pair{1, 16}}) {
    const auto x = llvm_test::random_tensor(DType::f32, {2, height, width, 48}, 3), k = llvm_test::random_tensor(DType::f32, {48}, 4);
    const ops::TensorView views[] = {x.view(), k.view()};
    const auto want = ops::evaluate(graph, views, ops::Precision::judge);
    CHECK(ops::first_difference(llvm_test::run(*program, graph, views)[0].view(), want[0].view(), 4).value_or("") == "");
  }
}

TEST_CASE("a few kernels have their sizes inside", "[sizes]") { CHECK(compiled(triangle(4)) >= 4); }
