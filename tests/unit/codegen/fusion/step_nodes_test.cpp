// What steps compute, and what they are called.
#include "fusion/step_nodes.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "catch.h"
#include "decisions/cpu_machine.h"
#include "graph/planning.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

std::vector<std::string> names_of_steps(std::string_view text) {
  ir::Graph graph = llvm_test::parse(text);
  const codegen::Plan plan = codegen::plan_graph(graph, llvm_backend::CpuMachine(16), {});
  std::vector<std::string> names;
  for (const codegen::Step& step : plan.steps) names.push_back(codegen::name_of(graph, codegen::computed_nodes(graph, plan, step)));
  return names;
}

using Names = std::vector<std::string>;

/// A chain over x of these ops, each of which takes one operand.
std::string chain_of(const std::vector<std::string>& ops) {
  std::string text = "graph @main (%v0: f32[8]) {\n";
  for (std::size_t i = 0; i < ops.size(); ++i) text += fmt::format("  %v{}: f32[8] = {}(%v{})\n", i + 1, ops[i], i);
  return text + fmt::format("  return %v{}\n}}", ops.size());
}

}  // namespace

TEST_CASE("a step is called by all that is fused into it, in order, each op once", "[names]") {
  CHECK(names_of_steps(chain_of({"neg"})) == Names{"neg"});
  CHECK(names_of_steps(chain_of({"sin", "exp", "sin"})) == Names{"fused_sin_exp"});
  CHECK(names_of_steps(R"(graph @main (%x: f32[8, 64], %y: f32[64]) {
    %a: f32[8, 64] = add(%x, %y)
    %r: f32[8, 64] = relu(%a)
    %m: f32[8] = sum(%r) {dim = [1], dtype = f32, keepdim = false}
    return %m
  })") == Names{"fused_add_relu_sum"});
}

TEST_CASE("what a step reads was computed elsewhere", "[names]") {
  CHECK(names_of_steps(R"(graph @main (%x: f32[64, 64]) {
    %e: f32[64, 64] = exp(%x)
    %o: f32[64] = sum(%e) {dim = [0], dtype = f32, keepdim = false}
    %s: f32[64] = sqrt(%o)
    %i: f32[64], %j: i64[64] = sort(%s) {dim = 0}
    %n: f32[64] = neg(%i)
    return %n
  })") == Names{"fused_exp_sum_sqrt", "sort", "neg"});
}

TEST_CASE("a product is called by what follows it, too", "[names]") {
  CHECK(names_of_steps(R"(graph @main (%x: f32[64, 32], %w: f32[32, 48], %b: f32[48]) {
    %p: f32[64, 48] = matmul(%x, %w)
    %s: f32[64, 48] = add(%p, %b)
    %r: f32[64, 48] = relu(%s)
    return %r
  })") == Names{"fused_mm_add_relu"});
}

TEST_CASE("names of many ops are cut, and say how many more there are", "[names]") {
  const std::vector<std::string> ops{"sin", "cos", "tan", "exp", "expm1", "log1p", "sqrt", "rsqrt", "sigmoid", "tanh", "asin", "acos", "atan", "sinh", "cosh", "asinh"};
  const Names names = names_of_steps(chain_of(ops));
  REQUIRE(names.size() == 1);
  CHECK(names[0].size() <= 75);
  CHECK_THAT(names[0], Catch::StartsWith("fused_sin_cos_tan_exp_expm1_") && Catch::EndsWith("_more"));
}
