// Attention as one kernel, thread by thread on the CPU, against the judge.
#include "catch.h"

#include <limits>

#include "unit/cuda/host_grid.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

struct Attention {
  const char* dtype = "f32";
  int heads = 1, rows = 72, columns = 72, depth = 64, results = 64;
  bool is_causal = false;
  std::string mask = "";  // its type
};

std::string text_of_attention(const Attention& a) {
  const auto type = [&](int length, int size) { return fmt::format("{}[1, {}, {}, {}]", a.dtype, a.heads, length, size); };
  const std::string result = type(a.rows, a.results), query = type(a.rows, a.depth), key = type(a.columns, a.depth), value = type(a.columns, a.results);
  return fmt::format("graph @main (%q: {}, %k: {}, %v: {}{}) {{\n  %y: {} = scaled_dot_product_attention(%q, %k, %v{}) {{is_causal = {}, scale = 0.125}}\n  return %y\n}}", query, key, value,
                     a.mask.empty() ? "" : ", %m: " + a.mask, result, a.mask.empty() ? "" : ", %m", a.is_causal);
}

ptx_test::ScheduledGraph scheduled_attention(const std::string& text, const cuda::ProductChoices& choices = {}) { return ptx_test::schedule_graph(llvm_test::parse(text), true, choices); }

bool is_one_kernel(const ptx_test::ScheduledGraph& graph) { return graph.kernels.size() == 1 && graph.kernels[0].schedule.attention.has_value(); }

std::string fault_of_attention(const std::string& text, double tolerance, const cuda::ProductChoices& choices = {}) {
  const ir::Graph graph = llvm_test::parse(text);
  const auto [tensors, views] = llvm_test::random_inputs(graph);
  const auto made = scheduled_attention(text, choices);
  if (!is_one_kernel(made)) return "it is no kernel of attention";
  return ptx_test::fault_on_host(made, graph, views, tolerance);
}

}  // namespace

TEST_CASE("attention is one kernel", "[ptx][attention]") {
  CHECK(fault_of_attention(text_of_attention({.rows = 140, .columns = 140, .is_causal = true}), 32) == "");
  CHECK(fault_of_attention(text_of_attention({.columns = 120, .mask = "bool[1, 1, 72, 120]"}), 32) == "");
  CHECK(fault_of_attention(text_of_attention({.dtype = "f16", .rows = 140, .columns = 140, .is_causal = true}), 64) == "");
  CHECK(fault_of_attention(text_of_attention({.dtype = "bf16", .heads = 2, .rows = 80, .columns = 120, .depth = 32, .results = 32}), 64) == "");
  CHECK(fault_of_attention(text_of_attention({.dtype = "bf16", .depth = 128, .results = 128, .mask = "f32[72, 72]"}), 64) == "");
}

TEST_CASE("operands of attention are rounded to tf32 where that is asked for", "[ptx][attention]") {
  const cuda::ProductChoices rounds{.rounding = {.products = true}};
  CHECK(fault_of_attention(text_of_attention({}), 32, rounds) != "");
  CHECK(fault_of_attention(text_of_attention({}), 16000, rounds) == "");
}

TEST_CASE("attention over what is no finite number, and rows that see nothing", "[ptx][attention]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const bool masks : {false, true}) {
    const ir::Graph graph = llvm_test::parse(text_of_attention({.rows = 72, .mask = masks ? "f32[72, 72]" : ""}));
    auto [tensors, views] = llvm_test::random_inputs(graph);
    float *q = tensors[0].as<float>(), *k = tensors[1].as<float>(), *v = tensors[2].as<float>();
    q[3 * 64] = kInfinity, v[6 * 64 + 3] = std::numeric_limits<float>::max();
    if (!masks) k[70 * 64 + 9] = kInfinity, v[5 * 64 + 2] = kInfinity;
    for (int i = 0; i < 72 && masks; ++i) tensors[3].as<float>()[20 * 72 + i] = -kInfinity;
    const auto made = scheduled_attention(text_of_attention({.rows = 72, .mask = masks ? "f32[72, 72]" : ""}));
    REQUIRE(is_one_kernel(made));
    CHECK(ptx_test::fault_on_host(made, graph, views, 32) == "");
  }
}
