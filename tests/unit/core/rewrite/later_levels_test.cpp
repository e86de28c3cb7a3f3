#include "core/rewrite/later_levels.h"

#include "catch.h"
#include "core/ir/parser.h"

using namespace tenon;

namespace {

/// The levels of a graph's nodes after those named `exp` or `mul` were allowed to wait; before, each node has a level of its own.
std::vector<int> levels_after(const char* text, std::optional<int> of_updates = {}) {
  const ir::Graph graph = ir::parse_graph(text).value();
  std::vector<int> level(graph.node_capacity(), 0);
  for (int next = 0; const NodeId n : graph.nodes()) level[n.value] = next++;
  const auto may_wait = [&](NodeId n) { return graph.node(n).op == "exp" || graph.node(n).op == "mul"; };
  const auto bytes_of = [&](ValueId v) {
    std::int64_t bytes = 4;
    for (const ir::Dim& d : graph.type(v).shape) bytes *= d.constant();
    return bytes;
  };
  const std::vector<int> until = rewrite::delay_nodes(graph, level, {may_wait, bytes_of, of_updates});
  for (const NodeId n : graph.nodes())
    for (const ValueId v : graph.node(n).operands) CHECK(until[v.value] >= level[n.value]);
  return level;
}

}  // namespace

TEST_CASE("a node waits for its reader where what it reads is kept anyway") {
  const char* text = R"(graph @main (%x: f32[64, 1024]) {
    %e: f32[64, 1024] = exp(%x)
    %a: f32[64, 1024] = sin(%x)
    %b: f32[64, 1024] = cos(%a)
    %r: f32[64, 1024] = add(%b, %e)
    return %r
  })";
  CHECK(levels_after(text) == std::vector{3, 1, 2, 3});
}

TEST_CASE("a node stays where more would be kept for it") {
  const char* text = R"(graph @main (%x: f32[64, 1024]) {
    %a: f32[64, 1024] = sin(%x)
    %s: f32[64, 1024] = sqrt(%x)
    %m: f32[64, 1024] = mul(%a, %s)
    %b: f32[64, 1024] = cos(%x)
    %r: f32[64, 1024] = add(%b, %m)
    return %r
  })";
  CHECK(levels_after(text) == std::vector{0, 1, 2, 3, 4});
}

TEST_CASE("nodes that only one another read wait together") {
  const char* text = R"(graph @main (%x: f32[64, 1024]) {
    %e: f32[64, 1024] = exp(%x)
    %f: f32[64, 1024] = exp(%e)
    %a: f32[64, 1024] = sin(%x)
    %r: f32[64, 1024] = add(%a, %f)
    return %r
  })";
  CHECK(levels_after(text) == std::vector{3, 3, 2, 3});
}

TEST_CASE("what updates waits for the end where the end is named, results never") {
  const char* text = R"(graph @main (%x: f32[64, 1024]) {
    %e: f32[64, 1024] = exp(%x)
    %f: f32[64, 1024] = exp(%x)
    %a: f32[64, 1024] = sin(%f)
    return %f, %a, update %x = %e
  })";
  CHECK(levels_after(text) == std::vector{0, 1, 2});
  CHECK(levels_after(text, 7) == std::vector{7, 1, 2});
}
