// A plan is what a machine answers: one that differs in a single answer gets another plan of the same graph.
#include "machine/machine.h"

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
