// A plan is what a machine answers: one that differs in a single answer gets another plan of the same graph.
#include "machine/machine.h"

#include <fmt/format.h>

#include <string>

#include "catch.h"
#include "decisions/cpu_machine.h"
#include "graph/planning.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// The CPU's answers, but for those that a test gives.
class AnsweringMachine : public llvm_backend::CpuMachine {
 public:
  AnsweringMachine() : CpuMachine(16) {}
  bool stores = false, multiplies = true;

  bool worth_storing(double, std::size_t paths) const override { return stores && paths > 1; }
  bool is_large_product(double, bool, double) const override { return multiplies; }
};

codegen::Plan plan_of(const char* text, const codegen::Machine& machine) {
  ir::Graph graph = llvm_test::parse(text);
  return codegen::plan_graph(graph, machine, {});
}

std::size_t products(const codegen::Plan& plan) {
  std::size_t count = 0;
  for (const codegen::Step& step : plan.steps) count += std::holds_alternative<codegen::ContractionStep>(step);
  return count;
}

std::size_t in_memory(const codegen::Plan& plan) { return static_cast<std::size_t>(std::count(plan.in_memory.begin(), plan.in_memory.end(), true)); }

}  // namespace

TEST_CASE("what several kernels read is stored where the machine says so", "[machine]") {
  const char* text = R"(graph @main (%x: f32[300, 200]) {
    %t: f32[300, 200] = mul(%x, %x)
    %r: f32[200] = sum(%t) {dim = [0], keepdim = false}
    %c: f32[300] = sum(%t) {dim = [1], keepdim = false}
    return %r, %c
  })";
  AnsweringMachine machine;
  const std::size_t computed_again = in_memory(plan_of(text, machine));
  machine.stores = true;
  CHECK(in_memory(plan_of(text, machine)) == computed_again + 1);
}

TEST_CASE("what is a matrix product is the machine's to say", "[machine]") {
  const char* text = R"(graph @main (%x: f32[64, 64], %y: f32[64, 64]) {
    %z: f32[64, 64] = matmul(%x, %y)
    return %z
  })";
  AnsweringMachine machine;
  CHECK(products(plan_of(text, machine)) == 1);
  machine.multiplies = false;
  CHECK(products(plan_of(text, machine)) == 0);
}

TEST_CASE("what reads little beside a product runs on its tiles, and what reads more, or follows a short sum, after it", "[machine]") {
  const auto steps = [](int depth, int read, int rows) {
    std::string text = fmt::format("graph @main (%x: f32[{0}, {1}], %y: f32[{1}, 512], %a: f32[{0}, 512], %b: f32[{0}, 512]) {{\n  %z: f32[{0}, 512] = mm(%x, %y)\n", rows, depth);
    text += fmt::format("  %r: f32[{0}, 512] = add({1}, {2})\n", rows, read == 2 ? "%a" : "%z", read == 0 ? "%z" : "%b");
    if (read == 2) text += fmt::format("  %s: f32[{0}, 512] = mul(%r, %z)\n", rows);
    text += fmt::format("  return {}\n}}", read == 2 ? "%s" : "%r");
    return plan_of(text.c_str(), llvm_backend::CpuMachine(16)).steps.size();
  };
  CHECK(steps(256, 0, 1024) == 1);
  CHECK(steps(256, 1, 1024) == 1);
  CHECK(steps(256, 2, 1024) == 2);
  CHECK(steps(8, 1, 1024) == 2);
  CHECK(steps(256, 2, 64) == 1);  // near enough
}

TEST_CASE("what updates a weight runs on the tiles of a convolution's gradient where those are wide", "[machine]") {
  codegen::ProductSize gradient{.rows = 512, .columns = 512 * 9, .depth = 256, .is_repeated = false, .is_dot = false, .writes_operand = false, .over_windows = true};
  CHECK(llvm_backend::CpuMachine(16).worth_following(gradient, 3));
  CHECK(llvm_backend::CpuMachine(8).worth_following(gradient, 1));
  CHECK_FALSE(llvm_backend::CpuMachine(8).worth_following(gradient, 3));
  gradient.over_windows = false;
  CHECK_FALSE(llvm_backend::CpuMachine(16).worth_following(gradient, 3));
}
