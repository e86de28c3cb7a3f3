// Makes groups of nodes executable one after the other: splits those that something outside runs through.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::host {

/// A dependence graph: `successors[n]` are the nodes that need node n. Acyclic.
using Dependences = std::vector<std::vector<std::uint32_t>>;
using NodeGroup = std::vector<std::uint32_t>;

struct ConvexGroups {
  std::vector<NodeGroup> groups;       // in an order in which they can run; nodes inside ascending
  std::vector<std::uint32_t> origins;  // for each group, the position of the group that it was cut from
  std::vector<std::uint32_t> split;    // positions of groups that had to be cut
};

/// Takes disjoint groups that together hold every node; node numbers are a topological order. Groups that earlier ones enclose or
/// that depend on each other both ways are cut into as few parts as their levels allow.
ConvexGroups make_convex(const Dependences& dependences, std::span<const NodeGroup> groups);

}  // namespace tenon::host
