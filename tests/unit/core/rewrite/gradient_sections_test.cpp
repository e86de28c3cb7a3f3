// Where the gradients of results end at other results.
#include "core/rewrite/gradient_sections.h"

#include <numeric>

#include "catch.h"
#include "core/ir/parser.h"
#include "core/rewrite/differentiated.h"

using namespace tenon;

namespace {

/// The numbers of the outputs that each graph of gradients is of; -1 for what is handed on.
std::vector<std::vector<int>> results_of(const rewrite::DifferentiatedGraph& made) {
  std::vector<std::vector<int>> all;
  for (const rewrite::BackwardGraph& b : made.backwards) {
    all.emplace_back();
    for (const rewrite::BackwardGraph::Result& r : b.results) all.back().push_back(r.output ? static_cast<int>(*r.output) : -1);
  }
  return all;
}

rewrite::DifferentiatedGraph by_all(const ir::Graph& graph) {
  std::vector<std::uint32_t> outputs(graph.outputs().size());
  std::iota(outputs.begin(), outputs.end(), 0u);
  return rewrite::with_backwards(graph, outputs, graph.inputs());
}

ir::Graph section_graph(const std::string& text) {
  auto graph = ir::parse_graph(text);
  REQUIRE(graph.ok());
  return std::move(*graph);
}

using Results = std::vector<std::vector<int>>;

}  // namespace

TEST_CASE("outputs that share nothing that is kept have gradients of their own") {
  const ir::Graph graph = section_graph(R"(graph @main(%x: f64[2], %w: f64[2]) {
    %a: f64[2] = sin(%x)
    %b: f64[2] = cos(%a)
    %c: f64[2] = mul(%a, %w)
    %d: f64[2] = neg(%w)
    %e: f64[2] = cos(%d)
    %f: f64[2] = exp(%d)
    return %b, %c, %e, %f
  })");
  CHECK(results_of(by_all(graph)) == Results{{0, 1}, {2}, {3}});
}

TEST_CASE("outputs that are joined by a later one are in one group") {
  const ir::Graph graph = section_graph(R"(graph @main(%x: f64[2], %w: f64[2]) {
    %p: f64[2] = sin(%x)
    %q: f64[2] = cos(%w)
    %a: f64[2] = exp(%p)
    %b: f64[2] = exp(%q)
    %c: f64[2] = mul(%p, %q)
    return %a, %b, %c
  })");
  CHECK(results_of(by_all(graph)) == Results{{0, 1, 2}});
}

TEST_CASE("an output that depends on another one has its gradient end there") {
  const ir::Graph graph = section_graph(R"(graph @main(%x: f64[2], %w: f64[2]) {
    %h: f64[2] = mul(%x, %w)
    %a: f64[2] = tanh(%h)
    %b: f64[2] = mul(%a, %w)
    %c: f64[2] = sin(%h)
    return %a, %b, %c, %h
  })");
  const auto made = by_all(graph);
  CHECK(results_of(made) == Results{{3}, {0}, {2}, {1}});
  REQUIRE(made.inner.size() == 2);
  CHECK(made.inner[0].output == 3u);
  CHECK(made.inner[1].output == 0u);
  const auto has = [](const rewrite::BackwardGraph& b) {
    std::vector<int> gradients;
    for (int w = 0; w < 4; ++w)
      if (b.gradients[w]) gradients.push_back(w);
    return gradients;
  };
  CHECK(has(made.backwards[0]) == std::vector<int>{0, 1});
  CHECK(has(made.backwards[1]) == std::vector<int>{2});
  CHECK(has(made.backwards[3]) == std::vector<int>{1, 3});
}

TEST_CASE("what a result and one behind it need is handed on where it keeps something, and else gone through twice") {
  const ir::Graph keeps = section_graph(R"(graph @main(%x: f64[2]) {
    %t: f64[2] = exp(%x)
    %h: f64[2] = sin(%t)
    %b: f64[2] = mul(%h, %t)
    return %h, %b
  })");
  CHECK(results_of(by_all(keeps)) == Results{{0, -1}, {1}});
  const ir::Graph cheap = section_graph(R"(graph @main(%x: f64[2]) {
    %t: f64[2] = neg(%x)
    %h: f64[2] = sin(%t)
    %b: f64[2] = mul(%h, %t)
    return %h, %b
  })");
  CHECK(results_of(by_all(cheap)) == Results{{0}, {1}});
}

TEST_CASE("what only a later output needs belongs to its graph") {
  const ir::Graph graph = section_graph(R"(graph @main(%x: f64[2], %w: f64[2]) {
    %e: f64[2] = exp(%w)
    %h: f64[2] = sin(%x)
    %b: f64[2] = mul(%h, %e)
    return %h, %b
  })");
  CHECK(results_of(by_all(graph)) == Results{{0}, {1}});
}

TEST_CASE("views that the caller makes have the gradients of what is computed from them") {
  const ir::Graph graph = section_graph(R"(graph @main(%x: f64[2, 3]) {
    %h: f64[2, 3] = sin(%x)
    %v: f64[3, 2] = permute(%h) {dims = [1, 0]}
    %b: f64[3, 2] = exp(%v)
    return %h, %b
  })");
  const ir::ValueId view = graph.node(graph.nodes()[1]).results[0];
  const std::vector<rewrite::ViewOfResult> views{{view, 0}};
  const auto made = rewrite::with_backwards(graph, std::vector<std::uint32_t>{0, 1}, std::vector<ir::ValueId>{graph.inputs()[0]}, {}, views);
  CHECK(results_of(made) == Results{{0}, {1}});
  REQUIRE(made.inner.size() == 1);
  CHECK(made.inner[0].view == 0u);
  CHECK(made.wanted[1] == view);
}
