// Nodes as calls of torch.
#include "core/ops/foreign/node_as_call.h"

#include "catch.h"
#include "core/ir/parser.h"

using namespace tenon;

namespace {

/// The first node of a graph as a call of torch's, with how many arguments come by position, and which by name.
std::string call_of(const char* text) {
  const ir::Graph graph = ir::parse_graph(text).value();
  const auto call = ops::node_as_call(graph, graph.nodes().front(), "torch.");
  if (!call) return "none";
  std::string words = std::string(call->name) + "/" + std::to_string(call->positional.size());
  for (const auto& [name, value] : call->keyword) words += " " + name;
  return words;
}

}  // namespace

TEST_CASE("a node is a call of the function that its op's entry names") {
  CHECK(call_of("graph @g (%x: f32[3]) {\n  %y: f32[3] = relu(%x)\n  return %y\n}\n") == "torch.relu/1");
  CHECK(call_of("graph @g (%x: f32[3]) {\n  %y: f64[3] = _to_copy(%x) {dtype = f64}\n  return %y\n}\n") == "torch.Tensor.to/1 dtype");
  CHECK(call_of("graph @g (%x: f32[1, 3, 8, 8], %w: f32[2, 3, 3, 3]) {\n  %y: f32[1, 2, 6, 6] = convolution(%x, %w)\n  return %y\n}\n") == "torch.conv2d/2");
  CHECK(call_of("graph @g (%x: f32[3], %z: f32[3], %v: f32[3]) {\n  %y: f32[3] = fma(%x, %z, %v)\n  return %y\n}\n") == "none");
  CHECK(call_of("graph @g (%x: f32[3], %z: f32[3]) {\n  %y: f32[3] = add(%x, %z)\n  return %y\n}\n") == "torch.add/2");
}
