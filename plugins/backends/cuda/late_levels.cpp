#include "late_levels.h"

#include <algorithm>
#include <optional>

namespace tenon::cuda {
namespace {

using ir::NodeId;
using ir::ValueId;

constexpr std::int64_t kUnknownExtent = 64;  // an extent that varies, where nothing is known of it
constexpr std::int64_t kSmall = 64 * 1024;   // bytes that do not count
constexpr int kDepth = 6;                    // nodes in a row that are looked at for one

class Delaying {
 public:
  Delaying(const ir::Graph& graph, NodeLevels& levels) : graph_(graph), levels_(levels), users_(graph.users()), until_(graph.value_capacity(), -1), output_(graph.value_capacity()) {
    for (const NodeId n : graph.nodes()) {
      last_ = std::max(last_, levels.level[n.value] + (levels.claimed[n.value] ? 0 : 1));
      for (const ValueId v : graph.node(n).operands) read_at(v, levels.level[n.value]);
    }
    for (const ir::Output& output : graph.outputs()) output_[output.value.value] = output.kind;
  }

  void run() {
    const auto nodes = graph_.nodes();
    for (std::size_t i = nodes.size(); i-- > 0;)
      if (levels_.claimed[nodes[i].value]) delay(nodes[i]);
  }

 private:
  void read_at(ValueId v, int level) { until_[v.value] = std::max(until_[v.value], level); }

  void delay(NodeId n) {
    std::optional<int> earliest;  // that reads it
    bool is_update = false, is_result = false;
    std::int64_t taken = 0;
    for (const ValueId v : graph_.node(n).results) {
      const auto& output = output_[v.value];
      is_update = is_update || output == ir::OutputKind::update;
      is_result = is_result || (output && output != ir::OutputKind::update);
      if (!output) taken += bytes_of(v);
      for (const NodeId user : users_[v.value]) earliest = std::min(earliest.value_or(last_), levels_.level[user.value]);
    }
    const int level = levels_.level[n.value], wanted = earliest.value_or(is_update ? last_ : level);
    if (wanted <= level || (!is_update && (is_result || held_for(n, wanted, kDepth) > taken * (wanted - level)))) return;
    levels_.level[n.value] = wanted;
    for (const ValueId v : graph_.node(n).operands) read_at(v, wanted);
  }

  /// Bytes, each as often as there are levels at which it is kept for the node's sake alone. What nobody else reads before that can be delayed with it.
  std::int64_t held_for(NodeId n, int level, int depth) const {
    std::int64_t held = 0;
    for (const ValueId v : graph_.node(n).operands) {
      if (graph_.value(v).kind != ir::ValueKind::result || output_[v.value] || until_[v.value] >= level || bytes_of(v) <= kSmall) continue;
      const std::int64_t kept = bytes_of(v) * (level - until_[v.value]);
      const NodeId before = graph_.value(v).node;
      const bool follows = depth > 0 && levels_.claimed[before.value] && std::ranges::all_of(users_[v.value], [&](NodeId user) { return user == n || levels_.level[user.value] >= level; });
      held += follows ? std::min(kept, held_for(before, level, depth - 1)) : kept;
    }
    return held;
  }

  std::int64_t bytes_of(ValueId v) const {
    const ir::Type& type = graph_.type(v);
    if (!type.is_tensor()) return 0;
    auto bytes = static_cast<std::int64_t>(size_of(type.dtype));
    for (const ir::Dim& d : type.shape) bytes *= d.is_constant() ? d.constant() : kUnknownExtent;
    return bytes;
  }

  const ir::Graph& graph_;
  NodeLevels& levels_;
  std::vector<std::vector<NodeId>> users_;                // by ValueId
  std::vector<int> until_;                                // by ValueId: the last level that reads it
  std::vector<std::optional<ir::OutputKind>> output_;     // by ValueId
  int last_ = 0;
};

}  // namespace

void delay_nodes(const ir::Graph& graph, NodeLevels& levels) { Delaying(graph, levels).run(); }

}  // namespace tenon::cuda
