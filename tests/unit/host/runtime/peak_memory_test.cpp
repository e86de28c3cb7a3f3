#include "host/runtime/peak_memory.h"

#include "catch.h"
#include "core/ir/parser.h"

using namespace tenon;
using namespace tenon::host;

TEST_CASE("running node by node holds what is still to be read, and the outputs") {
  const auto graph = ir::parse_graph(R"(graph @main [s0: 1..100] (%x: f32[s0, 10]) {
    %a: f32[s0, 10] = exp(%x)
    %t: f32[10, s0] = permute(%a) {dims = [1, 0]}
    %b: f32[10, s0] = mul(%t, 2)
    %c: f32[10] = sum(%b) {dim = [1], dtype = f32, keepdim = false}
    return %c
  })");
  REQUIRE(graph);
  const std::int64_t rows = 5, unknown = -1;
  CHECK(unfused_peak(*graph, std::span(&rows, 1)) == 400);  // a, seen through t, and b
  CHECK(unfused_peak(*graph, std::span(&unknown, 1)) == 40);
}

TEST_CASE("an output that views a result keeps it") {
  const auto graph = ir::parse_graph(R"(graph @main (%x: f32[4]) {
    %a: f32[4] = exp(%x)
    %v: f32[2, 2] = reshape(%a) {shape = [2, 2]}
    %b: f32[4] = neg(%x)
    %c: f32[4] = neg(%b)
    return %v, %c
  })");
  REQUIRE(graph);
  CHECK(unfused_peak(*graph, {}) == 48);
}
