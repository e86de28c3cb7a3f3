// Which nodes of a graph run later than they could, so that less lies in memory between groups.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace tenon::cuda {

/// By NodeId: the level at which a node runs (see codegen::Levels), and whether it is claimed. Others are never moved.
struct NodeLevels {
  std::vector<int> level;
  std::vector<bool> claimed;
};

/// Moves claimed nodes as far back as the first that reads them where that keeps less. What an update writes comes after all else: a plan writes it
/// over its input in the last step, and needs no memory for it.
void delay_nodes(const ir::Graph& graph, NodeLevels& levels);

}  // namespace tenon::cuda
