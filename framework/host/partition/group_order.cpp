#include "host/partition/group_order.h"

#include <algorithm>
#include <utility>

#include "core/ir/outputs.h"
#include "core/ir/symbol_uses.h"
#include "core/rewrite/rewriter.h"
#include "host/partition/placement.h"

namespace tenon::host {
namespace {

constexpr int kMostRounds = 64;

/// What a group writes to memory that others read, and what it reads of others.
struct Traffic {
  std::vector<ValueId> reads;
  std::int64_t written = 0;  // bytes
  bool moves = false;
};

class GroupOrder {
 public:
  GroupOrder(const ir::Graph& graph, std::span<const std::int64_t> sizes, std::span<const PlannedGroup> groups)
      : graph_(graph), sizes_(sizes), bytes_(graph.value_capacity(), 0), readers_(graph.value_capacity(), 0), group_of_(graph.node_capacity(), kNone), traffic_(groups.size()) {
    for (std::uint32_t g = 0; g < groups.size(); ++g)
      for (const NodeId n : groups[g].nodes) group_of_[n.value] = g;
    for (std::uint32_t g = 0; g < groups.size(); ++g) find_traffic(g, groups[g]);
    weigh(groups);
    for (const ir::Output& output : graph.outputs())  // whoever writes over inputs has its place
      if (output.kind == ir::OutputKind::update && definer(output.value) != kNone) traffic_[definer(output.value)].moves = false;
  }

  /// The groups by position.
  std::vector<std::uint32_t> found() {
    std::vector<std::uint32_t> order(traffic_.size());
    for (std::uint32_t g = 0; g < order.size(); ++g) order[g] = g;
    for (int round = 0; round < kMostRounds; ++round)
      if (!exchange_neighbours(order)) break;
    return order;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::uint32_t definer(ValueId v) const { return graph_.value(v).kind == ir::ValueKind::result ? group_of_[graph_.value(v).node.value] : kNone; }

  void find_traffic(std::uint32_t g, const PlannedGroup& group) {
    Traffic& traffic = traffic_[g];
    traffic.moves = group.backend != kByHost && group.backend != kCopiedByHost;
    for (const NodeId n : group.nodes) {
      const ir::Node& node = graph_.node(n);
      const auto on_host = [&](ValueId v) { return graph_.type(v).is_tensor() && graph_.type(v).device.is_host(); };
      traffic.moves = traffic.moves && rewrite::is_pure(graph_, node) && !rewrite::may_raise(node) && std::ranges::none_of(node.results, on_host);
      for (const ValueId v : node.operands)
        if (definer(v) != kNone && definer(v) != g) traffic.reads.push_back(v);
    }
    std::ranges::sort(traffic.reads, {}, &ValueId::value);
    const auto [first, last] = std::ranges::unique(traffic.reads);
    traffic.reads.erase(first, last);
  }

  /// Outputs lie in the caller's memory, and what no other group reads in none that lasts.
  void weigh(std::span<const PlannedGroup> groups) {
    const std::vector<bool> is_output = ir::output_values(graph_);
    for (const Traffic& traffic : traffic_)
      for (const ValueId v : traffic.reads) ++readers_[v.value];
    for (std::uint32_t g = 0; g < groups.size(); ++g)
      for (const NodeId n : groups[g].nodes)
        for (const ValueId v : graph_.node(n).results) {
          if (readers_[v.value] == 0 || is_output[v.value] || !graph_.type(v).is_tensor() || graph_.type(v).device.is_host()) continue;
          traffic_[g].written += bytes_[v.value] = expected_bytes(graph_, v, sizes_);
        }
  }

  bool reads_of(std::uint32_t g, std::uint32_t before) const {
    return std::ranges::any_of(traffic_[g].reads, [&](ValueId v) { return definer(v) == before; });
  }

  /// Bytes that nobody needs once a group has run next.
  std::int64_t freed(std::uint32_t g) const {
    std::int64_t bytes = 0;
    for (const ValueId v : traffic_[g].reads) bytes += left_[v.value] == 1 ? bytes_[v.value] : 0;
    return bytes;
  }

  /// The most bytes beside those before, where one runs and then the other.
  std::int64_t most(std::uint32_t first, std::uint32_t second) const {
    return std::max(traffic_[first].written, traffic_[first].written - freed(first) + traffic_[second].written);
  }

  bool exchange_neighbours(std::vector<std::uint32_t>& order) {
    left_ = readers_;
    bool any = false;
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      std::uint32_t &a = order[i], &b = order[i + 1];
      if (traffic_[a].moves && traffic_[b].moves && !reads_of(b, a) && most(b, a) < most(a, b)) std::swap(a, b), any = true;
      for (const ValueId v : traffic_[a].reads) --left_[v.value];
    }
    return any;
  }

  const ir::Graph& graph_;
  std::span<const std::int64_t> sizes_;
  std::vector<std::int64_t> bytes_;       // by ValueId: 0 for what takes none here
  std::vector<std::uint32_t> readers_;    // by ValueId: groups
  std::vector<std::uint32_t> left_;       // likewise: those that have not run yet
  std::vector<std::uint32_t> group_of_;   // by NodeId
  std::vector<Traffic> traffic_;          // by group
};

}  // namespace

void order_by_memory(const ir::Graph& graph, std::span<const std::int64_t> sizes, std::vector<PlannedGroup>& groups) {
  if (is_on_host(graph) || std::ranges::any_of(defining_nodes(graph), [](NodeId n) { return static_cast<bool>(n); })) return;
  std::vector<PlannedGroup> ordered;
  for (const std::uint32_t g : GroupOrder(graph, sizes, groups).found()) ordered.push_back(std::move(groups[g]));
  groups = std::move(ordered);
}

}  // namespace tenon::host
