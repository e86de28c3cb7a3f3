#include "host/partition/group_order.h"

#include "../test_backend.h"
#include "catch.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// The ops of a graph whose nodes are a group each, in the order in which they are to run.
std::vector<std::string> order_of(const std::string& nodes, const std::string& returned) {
  const std::string kWide = "f32[64, 64] on device2:0", kNarrow = "f32[64, 1] on device2:0";
  std::string text = "graph @g (%x: WIDE, %m: WIDE) {\n" + nodes + "  return " + returned + "\n}\n";
  for (const auto& [word, type] : {std::pair<std::string, std::string>{"WIDE", kWide}, {"NARROW", kNarrow}})
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos;) text.replace(at, word.size(), type);
  const ir::Graph graph = parse(text);
  std::vector<host::PlannedGroup> groups;
  for (const NodeId n : graph.nodes()) groups.push_back({.nodes = {n}});
  host::order_by_memory(graph, {}, groups);
  std::vector<std::string> ops;
  for (const host::PlannedGroup& group : groups) ops.emplace_back(graph.node(group.nodes[0]).op.text());
  return ops;
}

using Ops = std::vector<std::string>;

}  // namespace

TEST_CASE("what frees more than it takes runs before what takes more") {
  CHECK(order_of(R"(
  %h: WIDE = exp(%x)
  %g: WIDE = sin(%x)
  %of_input: WIDE = mm(%g, %x)
  %of_weight: NARROW = amax(%h) {dim = [1], keepdim = true}
  %y: WIDE = add(%of_input, %g)
)", "%y, %of_weight") == Ops{"exp", "amax", "sin", "mm", "add"});
}

TEST_CASE("what is read again later is not freed by those before") {
  CHECK(order_of(R"(
  %h: WIDE = exp(%x)
  %a: WIDE = mm(%h, %x)
  %b: NARROW = amax(%h) {dim = [1], keepdim = true}
  %c: WIDE = sub(%b, %h)
  %y: WIDE = mul(%c, %a)
)", "%y") == Ops{"exp", "mm", "amax", "sub", "mul"});
}

TEST_CASE("a group that writes over an input, and one that may fail for what it reads, keep their places") {
  constexpr const char* kNodes = R"(
  %h: WIDE = exp(%x)
  %a: WIDE = mm(%x, %x)
  %b: WIDE = mul(%h, 2.0)
  %y: WIDE = tanh(%a)
)";
  CHECK(order_of(kNodes, "%y, %b") == Ops{"exp", "mul", "mm", "tanh"});
  CHECK(order_of(kNodes, "%y, update %m = %b") == Ops{"exp", "mm", "mul", "tanh"});
}
