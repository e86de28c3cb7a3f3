// Replaces composite nodes that no backend takes by nodes of simpler ops, as deep as that helps.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::host {

/// Names a node of an expanded graph by how it came about: the position in the original graph, then the position among the nodes that
/// its parent was replaced by, and so on.
using ExpansionPath = std::vector<std::uint32_t>;

/// Which nodes are replaced: the paths of all of them, parents included.
using ExpansionChoice = std::set<ExpansionPath>;

struct ExpandedGraph {
  ir::Graph graph;
  std::vector<ExpansionPath> paths;  // by NodeId
  ExpansionChoice done;              // the chosen paths that could be replaced
};

/// Expands the chosen nodes of a copy. Expansion is a pure function of the graph and the choice: the same path names the same node
/// in every expansion that replaces its parents.
ExpandedGraph expand(const ir::Graph& graph, const ExpansionChoice& choice);

}  // namespace tenon::host
