#include "core/rewrite/later_levels.h"

#include <algorithm>

namespace tenon::rewrite {
namespace {

constexpr int kDepth = 6;  // nodes in a row that are looked at for one

class Delaying {
 public:
  Delaying(const ir::Graph& graph, std::vector<int>& level, const DelayRules& rules)
      : graph_(graph), level_(level), rules_(rules), users_(graph.users()), until_(graph.value_capacity(), -1), output_(graph.value_capacity()) {
    for (const NodeId n : graph.nodes()) read_operands(n);
    for (const ir::Output& output : graph.outputs()) output_[output.value.value] = output.kind;
  }

  std::vector<int> run() {
    const auto nodes = graph_.nodes();
    for (std::size_t i = nodes.size(); i-- > 0;)
      if (rules_.may_wait(nodes[i])) delay(nodes[i]);
    return std::move(until_);
  }

 private:
  void read_operands(NodeId n) {
    for (const ValueId v : graph_.node(n).operands) until_[v.value] = std::max(until_[v.value], level_[n.value]);
  }

  void delay(NodeId n) {
    std::optional<int> wanted;  // the first level that reads it
    bool is_update = false;
    std::int64_t taken = 0;
    for (const ValueId v : graph_.node(n).results) {
      const auto& output = output_[v.value];
      if (output && !(output == ir::OutputKind::update && rules_.level_of_updates)) return;
      is_update = is_update || output;
      if (!output) taken += rules_.bytes_of(v);
      for (const NodeId user : users_[v.value]) wanted = std::min(wanted.value_or(level_[user.value]), level_[user.value]);
    }
    if (!wanted && is_update) wanted = rules_.level_of_updates;
    int& level = level_[n.value];
    if (!wanted || *wanted <= level || (!is_update && price(n, *wanted, kDepth) > taken * (*wanted - level))) return;
    level = *wanted;
    read_operands(n);
  }

  /// Bytes, each as often as there are levels at which it is kept for the node's sake alone. What nobody else reads before that can wait with it.
  std::int64_t price(NodeId n, int level, int depth) const {
    std::int64_t price = 0;
    for (const ValueId v : graph_.node(n).operands) {
      if (graph_.value(v).kind != ir::ValueKind::result || output_[v.value] || until_[v.value] >= level || rules_.bytes_of(v) <= kNegligibleBytes) continue;
      const std::int64_t kept = rules_.bytes_of(v) * (level - until_[v.value]);
      const NodeId before = graph_.value(v).node;
      const bool follows = depth > 0 && rules_.may_wait(before) && std::ranges::all_of(users_[v.value], [&](NodeId user) { return user == n || level_[user.value] >= level; });
      price += follows ? std::min(kept, this->price(before, level, depth - 1)) : kept;
    }
    return price;
  }

  const ir::Graph& graph_;
  std::vector<int>& level_;  // by NodeId
  const DelayRules& rules_;
  std::vector<std::vector<NodeId>> users_;             // by ValueId
  std::vector<int> until_;                             // by ValueId: the last level that reads it
  std::vector<std::optional<ir::OutputKind>> output_;  // by ValueId
};

}  // namespace

std::vector<int> delay_nodes(const ir::Graph& graph, std::vector<int>& level, const DelayRules& rules) { return Delaying(graph, level, rules).run(); }

}  // namespace tenon::rewrite
