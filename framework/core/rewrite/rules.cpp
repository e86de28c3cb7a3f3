#include "core/rewrite/rules.h"

#include <deque>
#include <string>
#include <unordered_map>

#include "core/base/error.h"

namespace tenon::rewrite {
namespace {

/// The worklist of one run: nodes that may match, each queued at most once at a time.
class Worklist {
 public:
  explicit Worklist(const ir::Graph& graph) {
    for (NodeId node : graph.nodes()) push(node);
  }

  void push(NodeId node) {
    if (queued_.size() <= node.value) queued_.resize(node.value + 1, false);
    if (queued_[node.value]) return;
    queued_[node.value] = true;
    queue_.push_back(node);
  }

  NodeId pop() {
    const NodeId node = queue_.front();
    queue_.pop_front();
    queued_[node.value] = false;
    return node;
  }

  bool empty() const { return queue_.empty(); }

 private:
  std::deque<NodeId> queue_;
  std::vector<bool> queued_;
};

/// Which rules may match a node, by its op.
class RulesByOp {
 public:
  explicit RulesByOp(std::span<const Rule> rules) : rules_(rules) {}

  const std::vector<const Rule*>& of(const std::string& op) {
    const auto [found, is_new] = by_op_.try_emplace(op);
    if (is_new)
      for (const Rule& rule : rules_)
        if (rule.pattern.root().empty() || rule.pattern.root() == op) found->second.push_back(&rule);
    return found->second;
  }

 private:
  std::span<const Rule> rules_;
  std::unordered_map<std::string, std::vector<const Rule*>> by_op_;
};

/// Tries the rules on one node. True when one was applied.
bool apply_first(Rewriter& rewriter, NodeId node, const std::vector<const Rule*>& rules, Worklist& worklist) {
  if (rewriter.graph().node(node).results.size() != 1) return false;
  const ValueId result = rewriter.graph().node(node).results[0];
  for (const Rule* rule : rules) {
    auto bindings = rule->pattern.match(rewriter, result);
    if (!bindings) continue;
    const std::size_t first_new = rewriter.graph().node_capacity();
    Match match(rewriter, node, std::move(*bindings));
    const std::optional<ValueId> replacement = rule->replace(match);
    if (!replacement || *replacement == result || !rewriter.can_replace(result, *replacement)) continue;
    rewriter.replace(result, *replacement);
    rewriter.erase(node);
    for (NodeId user : rewriter.users(*replacement)) worklist.push(user);
    for (std::size_t id = first_new; id < rewriter.graph().node_capacity(); ++id) worklist.push(NodeId(id));
    return true;
  }
  return false;
}

}  // namespace

std::size_t apply_rules(ir::Graph& graph, std::span<const Rule> rules) {
  RulesByOp by_op(rules);
  Rewriter rewriter(graph);
  Worklist worklist(graph);
  const std::size_t limit = 64 * (graph.nodes().size() + 16);
  std::size_t applied = 0;
  while (!worklist.empty()) {
    const NodeId node = worklist.pop();
    if (rewriter.is_erased(node)) continue;
    applied += apply_first(rewriter, node, by_op.of(graph.node(node).op), worklist);
    TENON_CHECK(applied <= limit, "rewriting rules undo each other: {} applications in a graph of {} nodes", applied, graph.nodes().size());
  }
  rewriter.finish();
  return applied;
}

}  // namespace tenon::rewrite
