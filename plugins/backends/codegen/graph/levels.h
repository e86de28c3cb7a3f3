// Which nodes of a graph can be one group.
#pragma once

#include <map>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::codegen {

/// Gives each node a level so that nodes of one level form a convex group: a node after an unclaimed one, or after one whose size
/// depends on data, is a level further.
class Levels {
 public:
  explicit Levels(const ir::Graph& graph);

  /// Whether the node, which is to be placed next, makes sizes that depend on data.
  bool defines_sizes(const ir::Node& node) const;
  /// The level of the next node of the graph.
  int place(const ir::Node& node, bool claimed);

 private:
  const ir::Graph& graph_;
  std::vector<int> level_;
  std::vector<bool> barrier_;
  std::map<ir::SymbolId, int> symbol_level_;
};

}  // namespace tenon::codegen
