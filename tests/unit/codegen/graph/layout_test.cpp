// Channels last between convolutions, and outputs that lie so.
#include "graph/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "catch.h"
#include "decisions/cpu_machine.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// Two convolutions; what is said of the first one's result %y.
ir::Graph with_outputs(std::string_view nodes, std::string_view outputs) {
  return llvm_test::parse(fmt::format(R"(graph @main (%x: f32[2, 32, 13, 12], %k: f32[40, 32, 3, 3], %l: f32[32, 40, 3, 3]) {{
    %y: f32[2, 40, 13, 12] = conv_sum(%x, %k) {{after = [1, 1], before = [1, 1], dilation = [1, 1], groups = 1, stride = [1, 1]}}
    %r: f32[2, 40, 13, 12] = relu(%y)
    %z: f32[2, 32, 13, 12] = conv_sum(%r, %l) {{after = [1, 1], before = [1, 1], dilation = [1, 1], groups = 1, stride = [1, 1]}}
    {}
    return {}
  }})",
                                      nodes, outputs));
}

constexpr std::string_view kLast = "%p: f32[2, 13, 12, 40] = permute(%y) {dims = [0, 2, 3, 1]}\n";
constexpr std::string_view kTwice = "%q: f32[2, 13, 12, 40] = permute(%y) {dims = [0, 2, 3, 1]}\n";
constexpr std::string_view kRead = "%n: f32[2, 13, 12, 40] = neg(%p)\n";
constexpr std::string_view kElsewhere = "%p: f32[2, 12, 13, 40] = permute(%y) {dims = [0, 3, 2, 1]}\n";

/// The nodes that are left, of a graph whose layouts are chosen.
std::size_t permutes_left(ir::Graph graph) {
  codegen::choose_layouts(graph, llvm_backend::CpuMachine(16));
  return static_cast<std::size_t>(std::ranges::count_if(graph.nodes(), [&](ir::NodeId id) { return graph.node(id).op == "permute"; }));
}

}  // namespace

TEST_CASE("outputs with channels last are what others read", "[layout]") {
  CHECK(permutes_left(with_outputs(kLast, "%p, %z")) == 0);
  CHECK(permutes_left(with_outputs(std::string(kLast) + std::string(kTwice), "%p, %q, %z")) == 1);
  CHECK(permutes_left(with_outputs(std::string(kLast) + std::string(kRead), "%p, %n, %z")) == 1);
  CHECK(permutes_left(with_outputs(kLast, "%p, %y, %z")) == 1);
  CHECK(permutes_left(with_outputs(kElsewhere, "%p, %z")) == 1);
}

TEST_CASE("outputs with channels last have the right elements", "[layout]") {
  const std::string last(kLast);
  for (const auto& [nodes, outputs] : {std::pair(last, "%p, %z"), {last, "%z, %p, %r"}, {last + std::string(kTwice), "%p, %q, %z"}, {last + std::string(kRead), "%n, %p, %z"},
                                       {last, "%p, %y, %z"}, {std::string(kElsewhere), "%p, %z"}}) {
    CAPTURE(outputs);
    const ir::Graph graph = with_outputs(nodes, outputs);
    const llvm_test::Inputs inputs = llvm_test::random_inputs(graph);
    CHECK(llvm_test::difference(graph, inputs.views, {}, 400).value_or("") == "");
  }
}

TEST_CASE("filters of one channel each lie as the channels do", "[layout]") {
  ir::Graph graph = llvm_test::parse(R"(graph @main (%x: f32[2, 32, 13, 12], %k: f32[32, 1, 5, 5]) {
    %y: f32[2, 32, 13, 12] = conv_sum(%x, %k) {after = [2, 2], before = [2, 2], dilation = [1, 1], groups = 32, stride = [1, 1]}
    return %y
  })");
  codegen::choose_layouts(graph, llvm_backend::CpuMachine(16));
  for (const NodeId id : graph.nodes()) {
    if (graph.node(id).op != "conv_sum") continue;
    CHECK(graph.type(graph.node(id).operands[0]).resolved_strides()[1] == ir::Dim(1));
    CHECK(graph.type(graph.node(id).operands[1]).resolved_strides()[0] == ir::Dim(1));
    CHECK(graph.type(graph.node(id).results[0]).resolved_strides()[1] == ir::Dim(1));
  }
}
