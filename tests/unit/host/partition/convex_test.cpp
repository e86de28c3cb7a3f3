#include "host/partition/convex.h"

#include <algorithm>
#include <random>
#include <set>

#include "catch.h"

using namespace tenon::host;

namespace {

Dependences random_dag(std::mt19937& random, std::uint32_t nodes) {
  Dependences edges(nodes);
  for (std::uint32_t to = 1; to < nodes; ++to)
    for (int k = 0; k < 2; ++k) edges[random() % to].push_back(to);
  return edges;
}

/// True when the groups hold each node once, and every edge leads inside a group or to a later one.
bool runs_in_order(const Dependences& edges, const ConvexGroups& result) {
  std::vector<int> position(edges.size(), -1);
  for (std::size_t g = 0; g < result.groups.size(); ++g)
    for (std::uint32_t n : result.groups[g]) {
      if (position[n] != -1) return false;
      position[n] = static_cast<int>(g);
    }
  for (std::uint32_t n = 0; n < edges.size(); ++n) {
    if (position[n] < 0) return false;
    for (std::uint32_t next : edges[n])
      if (position[n] > position[next]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a group that another runs through is split", "[convex]") {
  const Dependences chain = {{1}, {2}, {}};
  const ConvexGroups result = make_convex(chain, std::vector<NodeGroup>{{0, 2}, {1}});
  CHECK(result.groups == std::vector<NodeGroup>{{0}, {1}, {2}});
  CHECK(result.split == std::vector<std::uint32_t>{0});
}

TEST_CASE("two convex groups that need each other are split", "[convex]") {
  const Dependences edges = {{2}, {3}, {}, {}};  // 0 -> 2, 1 -> 3
  const ConvexGroups result = make_convex(edges, std::vector<NodeGroup>{{0, 3}, {1, 2}});
  CHECK(runs_in_order(edges, result));
  CHECK(result.groups.size() == 3);
}

TEST_CASE("what is convex stays whole", "[convex]") {
  const Dependences edges = {{1, 2}, {3}, {3}, {}};
  const ConvexGroups result = make_convex(edges, std::vector<NodeGroup>{{0, 1, 2, 3}});
  CHECK(result.groups.size() == 1);
  CHECK(result.split.empty());
}

TEST_CASE("random groups of random graphs run in order", "[convex]") {
  const unsigned seed = 31;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t nodes = 2 + random() % 60;
    const Dependences edges = random_dag(random, nodes);
    std::vector<NodeGroup> groups(1 + random() % 8);
    for (std::uint32_t n = 0; n < nodes; ++n) groups[random() % groups.size()].push_back(n);
    const ConvexGroups result = make_convex(edges, groups);
    REQUIRE(runs_in_order(edges, result));
    for (std::size_t g = 0; g < result.groups.size(); ++g)
      for (std::uint32_t n : result.groups[g]) {
        const NodeGroup& origin = groups[result.origins[g]];
        REQUIRE(std::find(origin.begin(), origin.end(), n) != origin.end());
      }
  }
}
