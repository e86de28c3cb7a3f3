#include "core/rewrite/kept_values.h"

#include <algorithm>
#include <unordered_map>

#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/view.h"
#include "core/rewrite/id_set.h"
#include "core/rewrite/rewriter.h"

namespace tenon::rewrite {
namespace {

using ir::NodeId;
using ir::ValueId;

// Picoseconds on one core of a machine with a memory bandwidth of 45 GB/s.
constexpr std::int64_t kByteMoved = 22;      // one way
constexpr std::int64_t kByteHeld = 22;       // from the forward to the backward: what is kept makes all else slower
constexpr std::int64_t kInstruction = 15, kSlowInstruction = 90;  // of an element
constexpr std::int64_t kUnknownExtent = 64;  // an extent that varies

std::int64_t count_of(const ir::Shape& shape) {
  std::int64_t count = 1;
  for (const ir::Dim& d : shape) count *= d.is_constant() ? d.constant() : kUnknownExtent;
  return count;
}

std::int64_t bytes_of(const ir::Type& type) { return type.is_tensor() ? count_of(type.shape) * static_cast<std::int64_t>(size_of(type.dtype)) : 0; }

bool is_slow(ops::Primitive p) {
  using enum ops::Primitive;
  return (p >= exp && p <= lgamma) || p == div || p == fmod || p == remainder || p == floor_div || p == trunc_div;
}

/// What this looks at of the forward nodes.
class Forward {
 public:
  Forward(const GradientsInGraph& joint, const Keeping& keeping) : graph_(joint.graph), knows_tensors_(!keeping.tensors.empty()) {
    for (ValueId v : keeping.overwritten) overwritten_.insert(v);
    for (ValueId v : keeping.missing) missing_.insert(v);
    for (ValueId v : keeping.fixed) fixed_.insert(v);
    for (ValueId v : keeping.tensors) tensors_.insert(v);
    const auto nodes = graph_.nodes();
    for (std::size_t i = 0; i < joint.forward_nodes; ++i) {
      nodes_.insert(nodes[i]);
      if (is_pointwise(nodes[i])) continue;
      for (ValueId v : graph_.node(nodes[i]).operands) stored_.insert(v);
    }
    for (const ir::Output& o : graph_.outputs())
      if (o.kind == ir::OutputKind::result) results_.insert(o.value);
      else if (o.kind == ir::OutputKind::saved) at_hand_.insert(o.value);
      else overwritten_.insert(o.target);
    for (ValueId v : graph_.inputs())
      if (!is_overwritten(v) && !is_missing(v) && !fixed_.has(v)) in_reach_.insert(v);
    for (NodeId id : nodes.first(joint.forward_nodes)) find_reach(id);
  }

  bool has(NodeId id) const { return nodes_.has(id); }
  /// Whether a value is in memory anyway, since something reads it that is not computed element by element.
  bool is_stored(ValueId v) const { return stored_.has(v); }
  bool is_at_hand(ValueId v) const { return at_hand_.has(v); }
  bool is_result(ValueId v) const { return results_.has(v); }
  bool is_overwritten(ValueId v) const { return overwritten_.has(v); }
  bool is_missing(ValueId v) const { return missing_.has(v); }

  /// Whether computing a value again reads what the program can write before the gradients are computed.
  bool is_in_reach(ValueId v) const { return in_reach_.has(v); }

  /// Whether torch computes it again from what the program can write: a value on the way of a call.
  bool is_read_anew(ValueId v) const { return knows_tensors_ && !tensors_.has(v) && is_pointwise(graph_.value(v).node) && is_in_reach(v); }

  /// Whether a node may run a second time for the gradients.
  bool is_cheap(NodeId id) const {
    if (!is_pointwise(id)) return false;
    if (is_for_nothing(id) || !tensors_.has(graph_.node(id).results[0])) return true;
    return std::ranges::none_of(graph_.node(id).operands, [this](ValueId v) { return is_in_reach(v); });
  }

  /// Whether a node has no effect, and is computed element by element.
  bool is_pointwise(NodeId id) const {
    const ir::Node& node = graph_.node(id);
    const ops::Op* op = ops::find_op(node.op);
    if (!op || node.results.size() != 1 || !node.regions.empty() || !is_pure(graph_, node) || may_raise(node)) return false;
    return op->body || op->traits.creates || node.op == "constant" || ops::is_view(graph_, id);
  }

  /// Whether it has nothing of its own to be kept.
  bool is_for_nothing(NodeId id) const { return ops::is_view(graph_, id) || graph_.node(id).op == "constant"; }

 private:
  void find_reach(NodeId id) {
    const ir::Node& node = graph_.node(id);
    const bool reads = std::ranges::any_of(node.operands, [this](ValueId v) { return is_in_reach(v); });
    for (ValueId v : node.results)
      if (!is_at_hand(v) && (is_result(v) || (reads && (is_for_nothing(id) || (!tensors_.has(v) && is_pointwise(id)))))) in_reach_.insert(v);
  }

  const ir::Graph& graph_;
  const bool knows_tensors_;
  IdSet<NodeId> nodes_;
  IdSet<ValueId> stored_, results_, at_hand_, overwritten_, missing_, fixed_, tensors_, in_reach_;
};

/// Goes through what the gradients need, the last nodes first. `keeps(v)`: whether a value ends the way back.
template <class Keeps>
std::vector<ValueId> kept_where(const GradientsInGraph& joint, Keeps keeps) {
  std::vector<ValueId> kept;
  IdSet<ValueId> seen;
  IdSet<NodeId> again;
  const auto need = [&](ValueId v) {
    const ir::Value& value = joint.graph.value(v);
    if (value.kind == ir::ValueKind::literal || !seen.insert(v)) return;
    if (keeps(v)) kept.push_back(v);
    else if (value.kind == ir::ValueKind::result) again.insert(value.node);
  };
  std::ranges::for_each(joint.gradients, need);
  const auto nodes = joint.graph.nodes();
  for (std::size_t i = nodes.size(); i-- > 0;)
    if (again.has(nodes[i])) std::ranges::for_each(joint.graph.node(nodes[i]).operands, need);
  return kept;
}

class Network {
 public:
  Network(const GradientsInGraph& joint, const Forward& forward) : graph_(joint.graph), forward_(forward) {
    const auto nodes = graph_.nodes();
    for (ValueId v : joint.gradients) root(v);
    for (std::size_t i = nodes.size(); i-- > 0;)
      if (again_.has(nodes[i])) {
        for (ValueId v : graph_.node(nodes[i]).operands) root(v);
      } else if (forward.has(nodes[i])) {
        read(nodes[i]);
      }
  }

  KeepNetwork made;

 private:
  /// A gradient reads it.
  void root(ValueId v) {
    const ir::Value& value = graph_.value(v);
    if (value.kind == ir::ValueKind::result && !forward_.has(value.node)) again_.insert(value.node);
    else if (const auto number = number_of(v)) made.values[*number].needed = true;
  }

  /// A node of the forward: its result may be computed again.
  void read(NodeId id) {
    for (ValueId result : graph_.node(id).results) {
      const auto known = numbers_.find(result.value);
      if (known == numbers_.end() || made.values[known->second].compute == KeepNetwork::kNever) continue;
      for (ValueId v : graph_.node(id).operands)
        if (const auto number = number_of(v)) made.values[numbers_.at(result.value)].operands.push_back(*number);
    }
  }

  /// Nothing for what is there anyway.
  std::optional<std::uint32_t> number_of(ValueId v) {
    const ir::Value& value = graph_.value(v);
    if (value.kind == ir::ValueKind::literal || (value.kind == ir::ValueKind::input && !forward_.is_overwritten(v) && !forward_.is_missing(v))) return std::nullopt;
    const auto [at, first] = numbers_.try_emplace(v.value, static_cast<std::uint32_t>(made.values.size()));
    if (first) made.values.push_back({.id = v, .keep = cost_to_keep(v), .compute = cost_to_compute(v), .needed = false, .operands = {}});
    return at->second;
  }

  std::int64_t cost_to_keep(ValueId v) const {
    const ir::Value& value = graph_.value(v);
    if (forward_.is_at_hand(v)) return 0;
    if (forward_.is_missing(v)) return KeepNetwork::kNever;
    if (value.kind == ir::ValueKind::result && (forward_.is_for_nothing(value.node) || forward_.is_read_anew(v))) return KeepNetwork::kNever;
    if (forward_.is_result(v)) return bytes_of(graph_.type(v)) * kByteMoved;  // the program has it
    return bytes_of(graph_.type(v)) * (kByteHeld + kByteMoved * (forward_.is_stored(v) ? 1 : 2));
  }

  std::int64_t cost_to_compute(ValueId v) const {
    const ir::Value& value = graph_.value(v);
    if (value.kind != ir::ValueKind::result || !forward_.is_cheap(value.node)) return KeepNetwork::kNever;
    if (forward_.is_for_nothing(value.node)) return 0;
    const ops::Op* op = ops::find_op(graph_.node(value.node).op);
    std::int64_t each = kInstruction;
    if (op->body) {
      each = 0;
      for (const ops::Instruction& instruction : ops::body_program(graph_, value.node).instructions)
        if (instruction.op >= ops::Primitive::add) each += is_slow(instruction.op) ? kSlowInstruction : kInstruction;
    }
    return count_of(graph_.type(v).shape) * each;
  }

  const ir::Graph& graph_;
  const Forward& forward_;
  IdSet<NodeId> again_;
  std::unordered_map<std::uint32_t, std::uint32_t> numbers_;
};

}  // namespace

std::vector<ValueId> kept_values(const GradientsInGraph& joint, const Keeping& keeping) {
  const Forward forward(joint, keeping);
  if (keeping.choose) {
    const Network network(joint, forward);
    const std::vector<bool> kept = network.made.values.empty() ? std::vector<bool>() : keeping.choose(network.made);
    IdSet<ValueId> chosen;
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (kept[i]) chosen.insert(network.made.values[i].id);
    return kept_where(joint, [&](ValueId v) { return chosen.has(v); });
  }
  return kept_where(joint, [&](ValueId v) {
    const ir::Value& value = joint.graph.value(v);
    if (forward.is_at_hand(v)) return true;
    if (value.kind != ir::ValueKind::result) return forward.is_overwritten(v);
    if (!forward.has(value.node)) return false;
    return !forward.is_cheap(value.node) || (forward.is_result(v) && !forward.is_for_nothing(value.node));
  });
}

}  // namespace tenon::rewrite
