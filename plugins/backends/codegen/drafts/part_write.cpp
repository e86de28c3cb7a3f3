#include "drafts/part_write.h"

#include <algorithm>

#include "core/ops/catalog.h"

namespace tenon::codegen {
namespace {

class PartWrites {
 public:
  PartWrites(const ir::Graph& graph, const IndexAlgebra& algebra, const Machine& machine)
      : graph_(graph), algebra_(algebra), machine_(machine), users_(graph.users()) {}

  std::vector<std::optional<PartWrite>> find() {
    std::vector<std::optional<PartWrite>> found(graph_.node_capacity());
    std::vector<std::size_t> follows(graph_.node_capacity(), 0);  // writes up to this one; then of the whole sequence
    std::vector<bool> from_input(graph_.node_capacity(), false), to_output(graph_.node_capacity(), false);  // the sequence's ends
    const auto nodes = graph_.nodes();
    for (NodeId id : nodes) {
      found[id.value] = small_write(id);
      if (!found[id.value]) continue;
      while (auto* earlier = overwritten(found, *found[id.value])) {
        found[id.value]->base = (*earlier)->base;
        earlier->reset();
      }
      const ValueId base = found[id.value]->base;
      const auto before = node_of(base);
      follows[id.value] = 1 + (before ? follows[before->value] : 0);
      from_input[id.value] = before ? from_input[before->value] : graph_.value(base).kind == ir::ValueKind::input;
    }
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      auto& write = found[id->value];
      if (!write) continue;
      const ValueId result = graph_.node(*id).results[0];
      if (users_[result.value].empty() && is_output(result)) to_output[id->value] = true;
      if (const auto before = node_of(write->base); before && found[before->value]) {
        follows[before->value] = std::max(follows[before->value], follows[id->value]);
        if (to_output[id->value]) to_output[before->value] = true;
      }
      const bool updates = from_input[id->value] && to_output[id->value];
      if (!updates && follows[id->value] < machine_.thresholds.part_writes) write.reset();
    }
    return found;
  }

 private:
  std::optional<NodeId> node_of(ValueId value) const {
    const ir::Value& v = graph_.value(value);
    return v.kind == ir::ValueKind::result ? std::optional(v.node) : std::nullopt;
  }

  /// The write that another one overwrites altogether, and nobody reads in between.
  std::optional<PartWrite>* overwritten(std::vector<std::optional<PartWrite>>& writes, const PartWrite& write) const {
    const auto before = node_of(write.base);
    if (!before || !writes[before->value] || is_output(write.base)) return nullptr;
    const auto own = [&](NodeId user) { return std::ranges::find(write.nodes, user) != write.nodes.end(); };
    if (!std::ranges::all_of(users_[write.base.value], own)) return nullptr;
    auto& earlier = writes[before->value];
    const auto same = [](const ops::ShownDim& a, const ops::ShownDim& b) { return a.start == b.start && a.step == b.step && a.kept == b.kept; };
    const bool whole = std::ranges::equal(earlier->part, write.part, same) && graph_.type(earlier->source).shape == graph_.type(write.source).shape;
    return whole ? &earlier : nullptr;
  }

  bool is_output(ValueId value) const {
    return std::ranges::any_of(graph_.outputs(), [&](const ir::Output& output) { return output.value == value; });
  }

  std::optional<PartWrite> write_of(NodeId id) const {
    const ir::Node& node = graph_.node(id);
    const ops::Op* op = ops::find_op(node.op);
    if (!op || !op->written_part) return {};
    std::vector<ops::ShownDim> part = op->written_part(ops::OpQuery(graph_, node.operands, node.attributes));
    if (part.empty() && graph_.type(node.operands[0]).rank() > 0) return {};
    return PartWrite{node.operands[0], node.operands[1], std::move(part), {id}};
  }

  /// True when `view` is the view of the base that the node writes.
  bool shows_written_part(ValueId view, NodeId write) const {
    const auto id = node_of(view);
    if (!id) return false;
    const ir::Node &of_view = graph_.node(*id), &of_write = graph_.node(write);
    return std::string(of_view.op) + "_scatter" == std::string(of_write.op) && of_view.operands[0] == of_write.operands[0] && of_view.attributes == of_write.attributes;
  }

  /// A write whose source is the written view with a part of it written: the two as one.
  std::optional<PartWrite> whole_write(NodeId id) const {
    auto write = write_of(id);
    while (write) {
      const auto inner_id = node_of(write->source);
      const auto inner = inner_id ? write_of(*inner_id) : std::nullopt;
      if (!inner || users_[write->source.value].size() != 1 || is_output(write->source) || !shows_written_part(inner->base, id)) return write;
      std::size_t of_view = 0;
      for (ops::ShownDim& dim : write->part) {
        if (!dim.kept) continue;
        const ops::ShownDim& next = inner->part[of_view++];
        dim = {dim.start + next.start * Dim(dim.step), dim.step * next.step, next.kept};
      }
      write->source = inner->source;
      write->nodes.push_back(*inner_id);
      if (users_[inner->base.value].size() == 1 && !is_output(inner->base)) write->nodes.push_back(*node_of(inner->base));
      id = *inner_id;
    }
    return write;
  }

  std::optional<PartWrite> small_write(NodeId id) const {
    auto write = whole_write(id);
    if (!write || graph_.value(write->source).kind == ir::ValueKind::literal || graph_.type(write->source).dtype != graph_.type(write->base).dtype) return {};
    const double whole = algebra_.estimate(graph_.type(write->base).element_count()), part = algebra_.estimate(graph_.type(write->source).element_count());
    return machine_.worth_writing_part(whole, part) ? std::move(write) : std::nullopt;
  }

  const ir::Graph& graph_;
  const IndexAlgebra& algebra_;
  const Machine& machine_;
  const std::vector<std::vector<NodeId>> users_;
};

}  // namespace

std::vector<std::optional<PartWrite>> part_writes(const ir::Graph& graph, const IndexAlgebra& algebra, const Machine& machine) {
  return PartWrites(graph, algebra, machine).find();
}

}  // namespace tenon::codegen
