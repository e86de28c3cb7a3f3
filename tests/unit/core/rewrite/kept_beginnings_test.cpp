#include "core/rewrite/kept_beginnings.h"

#include <algorithm>

#include "catch.h"
#include "core/ir/parser.h"
#include "core/rewrite/differentiated.h"

using namespace tenon;

namespace {

/// A dense block of products: each reads all that is there so far.
constexpr const char* kBlock = R"(graph @main(%x: f64[3, 2], %u: f64[2, 2], %w: f64[4, 2], %v: f64[6, 3]) {
  %a: f64[3, 2] = mm(%x, %u)
  %b: f64[3, 2] = tanh(%a)
  %ab: f64[3, 4] = cat(%a, %b) {dim = 1}
  %c: f64[3, 2] = mm(%ab, %w)
  %abc: f64[3, 6] = cat(%a, %b, %c) {dim = 1}
  %y: f64[3, 3] = mm(%abc, %v)
  return %y)";

ir::Graph block(const std::string& more = {}) {
  auto graph = ir::parse_graph(kBlock + more + "\n}");
  REQUIRE(graph.ok());
  return std::move(*graph);
}

std::vector<std::string> kept_of(const ir::Graph& graph, std::size_t of = 0) {
  std::vector<ir::ValueId> wanted(graph.inputs().begin(), graph.inputs().end());
  const auto made = rewrite::with_backwards(graph, std::vector<std::uint32_t>{0}, wanted);
  std::vector<std::string> names;
  for (std::uint32_t o : made.backwards[of].kept_outputs) names.push_back(made.forward.value(made.forward.outputs()[o].value).name);
  return names;
}

bool has(const std::vector<std::string>& names, const char* name) { return std::ranges::find(names, name) != names.end(); }

}  // namespace

TEST_CASE("of concatenations that begin one another the longest is kept") {
  const auto kept = kept_of(block());
  CHECK(has(kept, "abc"));
  CHECK_FALSE(has(kept, "ab"));
}

TEST_CASE("a concatenation that the program gets is no memory for others") {
  const auto kept = kept_of(block(", %abc"));
  CHECK(has(kept, "abc"));
  CHECK(has(kept, "ab"));
}

TEST_CASE("concatenations along other dimensions, or of other values, are no parts") {
  ir::Graph graph = block();
  const auto nodes = graph.nodes();
  const ir::ValueId ab = graph.node(nodes[2]).results[0], abc = graph.node(nodes[4]).results[0];
  CHECK(rewrite::without_beginnings(graph, {ab, abc}) == std::vector{abc});
  std::swap(graph.mutable_node(nodes[2]).operands[0], graph.mutable_node(nodes[2]).operands[1]);
  CHECK(rewrite::without_beginnings(graph, {ab, abc}) == std::vector{ab, abc});
}
