// Updates behind the gradients of weights run when what they multiply is there, and not at the end of a step.
#include "fusion/early_steps.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "catch.h"
#include "decisions/cpu_machine.h"
#include "graph/planning.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// The backward of three layers, then an update of each weight.
constexpr const char* kStep = R"(graph @main (%x: f32[40, 64], %h: f32[40, 48], %i: f32[40, 32], %g: f32[40, 24], %u: f32[64, 48], %v: f32[48, 32], %w: f32[32, 24]) {
  %it: f32[32, 40] = permute(%i) {dims = [1, 0]}
  %gw: f32[32, 24] = mm(%it, %g)
  %wt: f32[24, 32] = permute(%w) {dims = [1, 0]}
  %gi: f32[40, 32] = mm(%g, %wt)
  %ht: f32[48, 40] = permute(%h) {dims = [1, 0]}
  %gv: f32[48, 32] = mm(%ht, %gi)
  %vt: f32[32, 48] = permute(%v) {dims = [1, 0]}
  %gh: f32[40, 48] = mm(%gi, %vt)
  %xt: f32[64, 40] = permute(%x) {dims = [1, 0]}
  %gu: f32[64, 48] = mm(%xt, %gh)
  %sw: f32[32, 24] = mul(%gw, 0.1)
  %nw: f32[32, 24] = sub(%w, %sw)
  %sv: f32[48, 32] = mul(%gv, 0.1)
  %nv: f32[48, 32] = sub(%v, %sv)
  %su: f32[64, 48] = mul(%gu, 0.1)
  %nu: f32[64, 48] = sub(%u, %su)
  return update %w = %nw, update %v = %nv, update %u = %nu
})";

/// The place among the steps of the one that writes a value.
std::size_t step_of(const codegen::Plan& plan, const ir::Graph& graph, std::string_view name) {
  const auto writes = [&](const codegen::Step& step) {
    return std::ranges::any_of(codegen::values_of(step, graph, true), [&](std::size_t v) { return v < graph.value_capacity() && graph.value(ir::ValueId(static_cast<std::uint32_t>(v))).name == name; });
  };
  return static_cast<std::size_t>(std::ranges::find_if(plan.steps, writes) - plan.steps.begin());
}

}  // namespace

TEST_CASE("weights are updated as soon as nobody else reads them", "[early_steps]") {
  ir::Graph graph = llvm_test::parse(kStep);
  const codegen::Plan plan = codegen::plan_graph(graph, llvm_backend::CpuMachine(16), {});
  REQUIRE(plan.steps.size() == 5);
  CHECK(step_of(plan, graph, "gi") < step_of(plan, graph, "nw"));  // which reads the weight
  CHECK(step_of(plan, graph, "nw") < step_of(plan, graph, "gh"));
  CHECK(step_of(plan, graph, "gh") < step_of(plan, graph, "nv"));
}

TEST_CASE("updates that come early are written over their weights", "[early_steps]") {
  const ir::Graph graph = llvm_test::parse(kStep);
  const llvm_test::Inputs inputs = llvm_test::random_inputs(graph);
  CHECK(llvm_test::difference(graph, inputs.views, {}, 60).value_or("") == "");
  const auto program = llvm_test::compile(graph);
  for (std::uint32_t k = 0; k < 3; ++k)
    CHECK(std::ranges::any_of(program->aliases(), [&](const TenonAliasPermit& permit) { return permit.output == k && permit.input == 6 - k; }));
}
