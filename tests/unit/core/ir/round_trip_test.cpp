// Random graphs through text and buffer and back: nothing may change.
#include "catch.h"
#include "core/abi/buffer_verifier.h"
#include "core/ir/buffer.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "unit/core/ir/random_graph.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr std::uint64_t kGraphs = 400;

Graph random_graph(std::uint64_t seed) { return testing::RandomGraph(seed).make(); }

std::vector<std::uint8_t> semantic(const std::vector<std::uint8_t>& buffer) {
  const TenonBytes part = semantic_bytes(bytes_of(buffer));
  return {part.data, part.data + part.size};
}

}  // namespace

TEST_CASE("random graphs are well-formed, and so are their buffers") {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Graph g = random_graph(seed);
    INFO("seed " << seed << "\n" << print_graph(g));
    const auto wrong = verify_graph(g);
    REQUIRE((wrong ? wrong->message : "") == "");
    REQUIRE(verify_buffer(bytes_of(write_buffer(g))) == "");
    REQUIRE(verify_buffer(bytes_of(write_buffer(g, {.debug = false}))) == "");
  }
}

TEST_CASE("text reads back to the same text and the same bytes") {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Graph g = random_graph(seed);
    const std::string text = print_graph(g);
    INFO("seed " << seed << "\n" << text);
    const Result<Graph> again = parse_graph(text);
    REQUIRE((again ? "" : again.error().message) == "");
    REQUIRE(print_graph(*again) == text);
    REQUIRE(write_buffer(*again) == write_buffer(g));
  }
}

TEST_CASE("buffers read back to the same bytes and the same text") {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Graph g = random_graph(seed);
    INFO("seed " << seed << "\n" << print_graph(g));
    const auto buffer = write_buffer(g);
    const Result<Graph> again = read_buffer(bytes_of(buffer));
    REQUIRE((again ? "" : again.error().message) == "");
    REQUIRE(write_buffer(*again) == buffer);
    REQUIRE(print_graph(*again) == print_graph(g));
    const auto wrong = verify_graph(*again);
    REQUIRE((wrong ? wrong->message : "") == "");
  }
}

TEST_CASE("names and locations are no part of the meaning") {
  for (std::uint64_t seed = 0; seed < kGraphs / 4; ++seed) {
    const Graph g = random_graph(seed);
    const auto buffer = write_buffer(g);
    REQUIRE(semantic(buffer) == write_buffer(g, {.debug = false}));
    Graph renamed = g.clone();
    for (NodeId n : g.nodes()) {
      for (ValueId r : g.node(n).results) renamed.set_name(r, "other");
      renamed.mutable_node(n).location = Location{"elsewhere.py", 7, "", ""};
    }
    REQUIRE(semantic(write_buffer(renamed)) == semantic(buffer));
    const Result<Graph> nameless = read_buffer(bytes_of(semantic(buffer)));
    REQUIRE(nameless.ok());
    REQUIRE(write_buffer(*nameless, {.debug = false}) == semantic(buffer));
  }
}
