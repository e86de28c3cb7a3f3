// Which nodes run later than they could, so that less lies in memory in between.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::rewrite {

/// Bytes of a value that do not count.
constexpr std::int64_t kNegligibleBytes = 64 * 1024;

/// What moving nodes asks of who runs them.
struct DelayRules {
  std::function<bool(NodeId)> may_wait;           // the others stay at their levels
  std::function<std::int64_t(ValueId)> bytes_of;  // 0 for what takes no memory
  /// The level for nodes that compute updates and that nobody reads: a plan writes an update over its input in the last step, and needs no memory
  /// for it. Without one they stay, as nodes of results do.
  std::optional<int> level_of_updates = {};
};

/// Moves nodes to the level of the first that reads them where that keeps less for less time. `level`, by NodeId: a node's is no lower than
/// those of its operands. Gives, by ValueId, the last level that reads each; -1 for none.
std::vector<int> delay_nodes(const ir::Graph& graph, std::vector<int>& level, const DelayRules& rules);

}  // namespace tenon::rewrite
