#include "core/rewrite/rewriter.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/catalog.h"

namespace tenon::rewrite {

Rewriter::Rewriter(ir::Graph& graph)
    : graph_(graph), users_(graph.users()), erased_(graph.node_capacity(), false), wanted_(graph.node_capacity(), true), replaced_(graph.node_capacity(), false), known_nodes_(graph.node_capacity()) {}

const ir::Node* Rewriter::definition(ValueId value) const {
  const ir::Value& v = graph_.value(value);
  return v.kind == ir::ValueKind::result ? &graph_.node(v.node) : nullptr;
}

const std::vector<NodeId>& Rewriter::users(ValueId value) {
  learn_new_nodes();
  return users_[value.value];
}

bool Rewriter::is_output(ValueId value) const {
  return std::ranges::any_of(graph_.outputs(), [&](const ir::Output& output) { return output.value == value; });
}

ops::NodeBuilder Rewriter::before(NodeId node) {
  learn_new_nodes();
  ops::NodeBuilder builder(graph_, node);
  builder.at(graph_.node(node).location);
  return builder;
}

bool Rewriter::can_replace(ValueId from, ValueId to) const {
  const ir::Type& old_type = graph_.type(from);
  const ir::Type& new_type = graph_.type(to);
  if (old_type == new_type) return graph_.value(to).kind != ir::ValueKind::literal;
  ir::Type relaxed = new_type;
  relaxed.strides = old_type.strides;
  return relaxed == old_type && !is_output(from);
}

void Rewriter::replace(ValueId from, ValueId to) {
  TENON_CHECK(can_replace(from, to), "%{} cannot replace %{}: their types differ", graph_.value(to).name, graph_.value(from).name);
  const ir::Value& replacement = graph_.value(to);
  const bool is_new = replacement.kind == ir::ValueKind::result && replacement.node.value >= known_nodes_;
  learn_new_nodes();
  for (NodeId user : users_[from.value]) {
    std::ranges::replace(graph_.mutable_node(user).operands, from, to);
    users_[to.value].push_back(user);
  }
  edits_ += users_[from.value].size();
  users_[from.value].clear();

  std::vector<ir::Output> outputs(graph_.outputs().begin(), graph_.outputs().end());
  for (ir::Output& output : outputs) {
    if (output.value != from) continue;
    output.value = to;
    ++edits_;
  }
  graph_.set_outputs(std::move(outputs));
  if (is_new) {
    std::string name = graph_.value(from).name;
    graph_.set_name(from, name + ".old");
    graph_.set_name(to, std::move(name));
  }
  if (const NodeId node = graph_.value(to).node) wanted_[node.value] = true;
  const NodeId old = graph_.value(from).node;
  if (old) replaced_[old.value] = true;
  orphans_.push_back(old);
}

void Rewriter::erase(NodeId node) {
  if (is_erased(node)) return;
  learn_new_nodes();
  erased_[node.value] = true;
  ++edits_;
  for (ValueId operand : graph_.node(node).operands) {
    std::erase(users_[operand.value], node);
    if (graph_.value(operand).node) orphans_.push_back(graph_.value(operand).node);
  }
}

void Rewriter::never_raises(NodeId node) {
  learn_new_nodes();
  replaced_[node.value] = true;
}

std::size_t Rewriter::finish() {
  learn_new_nodes();
  while (!orphans_.empty()) {
    const NodeId node = orphans_.back();
    orphans_.pop_back();
    if (node) drop_if_dead(node);
  }
  std::vector<NodeId> gone;
  for (std::size_t i = 0; i < erased_.size(); ++i)
    if (erased_[i]) gone.emplace_back(i);
  graph_.erase_nodes(gone);
  std::fill(erased_.begin(), erased_.end(), false);
  return edits_;
}

void Rewriter::learn_new_nodes() {
  users_.resize(graph_.value_capacity());
  for (std::vector<bool>* flags : {&erased_, &wanted_, &replaced_}) flags->resize(graph_.node_capacity(), false);
  for (; known_nodes_ < graph_.node_capacity(); ++known_nodes_) {
    const NodeId node(known_nodes_);
    for (ValueId operand : graph_.node(node).operands) {
      users_[operand.value].push_back(node);
      if (const NodeId maker = graph_.value(operand).node) wanted_[maker.value] = true;
    }
    orphans_.push_back(node);
  }
}

void Rewriter::drop_if_dead(NodeId id) {
  if (is_erased(id)) return;
  const ir::Node& node = graph_.node(id);
  const bool is_read = std::ranges::any_of(node.results, [&](ValueId r) { return !users_[r.value].empty() || is_output(r); });
  const bool fails = may_raise(node) && wanted_[id.value] && !replaced_[id.value];
  if (!is_read && !fails && is_pure(graph_, node)) erase(id);
}

bool is_pure(const ir::Graph& graph, const ir::Node& node) {
  const ops::Op* op = ops::find_op(node.op);
  if (!op) return node.op == "constant";
  if (op->traits.random || op->traits.opaque) return false;
  return std::ranges::all_of(node.regions, [&](RegionId id) {
    const ir::Graph& region = graph.region(id);
    return std::ranges::all_of(region.nodes(), [&](NodeId inner) { return is_pure(region, region.node(inner)); });
  });
}

bool may_raise(const ir::Node& node) {
  const ops::Op* op = ops::find_op(node.op);
  return !op || op->traits.may_raise;
}

}  // namespace tenon::rewrite
