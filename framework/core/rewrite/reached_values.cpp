#include "core/rewrite/reached_values.h"

#include <algorithm>

namespace tenon::rewrite {

std::vector<bool> reached_values(const ir::Graph& graph, std::span<const ir::ValueId> from, const std::function<std::vector<ir::ValueId>(ir::NodeId)>& over,
                                 const std::function<bool(ir::ValueId)>& takes) {
  std::vector<bool> reached(graph.value_capacity(), false), asked(graph.node_capacity(), false);
  std::vector<ir::ValueId> pending;
  const auto reach = [&](ir::ValueId v) {
    if (reached[v.value]) return;
    reached[v.value] = true;
    pending.push_back(v);
  };
  const auto pass = [&](ir::NodeId id) {
    if (asked[id.value]) return;
    asked[id.value] = true;
    for (ir::ValueId v : over(id))
      if (takes(v)) reach(v);
  };
  std::ranges::for_each(from, reach);
  const auto users = graph.users();
  while (!pending.empty()) {
    const ir::ValueId value = pending.back();
    pending.pop_back();
    std::ranges::for_each(users[value.value], pass);
    if (graph.value(value).kind == ir::ValueKind::result) pass(graph.value(value).node);
  }
  return reached;
}

}  // namespace tenon::rewrite
