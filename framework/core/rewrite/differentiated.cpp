#include "core/rewrite/differentiated.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "core/base/error.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/view.h"
#include "core/rewrite/differentiate.h"
#include "core/rewrite/rewriter.h"

namespace tenon::rewrite {
namespace {

/// A set of values or nodes, by id.
template <class Id>
class IdSet {
 public:
  bool has(Id id) const { return id.value < bits_.size() && bits_[id.value]; }
  bool insert(Id id) {
    if (has(id)) return false;
    if (bits_.size() <= id.value) bits_.resize(id.value + 1, false);
    return bits_[id.value] = true;
  }

 private:
  std::vector<bool> bits_;
};

bool is_result(const ir::Graph& graph, ValueId v) { return graph.value(v).kind == ir::ValueKind::result; }

/// The nodes on which the values depend, where some values are there.
IdSet<NodeId> needed_by(const ir::Graph& graph, std::span<const ValueId> values, const IdSet<ValueId>& there) {
  IdSet<NodeId> needed;
  const auto need = [&](ValueId v) {
    if (is_result(graph, v) && !there.has(v)) needed.insert(graph.value(v).node);
  };
  std::ranges::for_each(values, need);
  const auto nodes = graph.nodes();
  for (std::size_t i = nodes.size(); i-- > 0;)
    if (needed.has(nodes[i])) std::ranges::for_each(graph.node(nodes[i]).operands, need);
  return needed;
}

/// The values that change with some others.
IdSet<ValueId> depending_on(const ir::Graph& graph, std::span<const ValueId> values) {
  IdSet<ValueId> depending;
  for (ValueId v : values) depending.insert(v);
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.op == "detach" || std::ranges::none_of(node.operands, [&](ValueId v) { return depending.has(v); })) continue;
    for (ValueId v : node.results) depending.insert(v);
  }
  return depending;
}

std::vector<ValueId> values_of(const ir::Graph& graph, std::span<const std::uint32_t> outputs) {
  std::vector<ValueId> values;
  for (std::uint32_t o : outputs) values.push_back(graph.outputs()[o].value);
  return values;
}

/// A graph with its gradients appended.
struct Joint {
  ir::Graph graph;
  std::size_t forward_nodes = 0;  // the first of its nodes are those of the forward, where that has no composite op to expand
  std::vector<ValueId> inputs, wanted, tangents;
  std::vector<std::optional<ValueId>> gradients;  // by wanted input
};

Joint with_gradients(const ir::Graph& graph, std::span<const std::uint32_t> outputs, std::span<const std::uint32_t> wanted) {
  Joint joint;
  joint.graph = graph.clone();
  joint.inputs.assign(graph.inputs().begin(), graph.inputs().end());
  for (std::uint32_t i : wanted) joint.wanted.push_back(joint.inputs[i]);
  joint.forward_nodes = joint.graph.nodes().size();
  std::vector<Seed> seeds;
  for (std::uint32_t o : outputs) {
    const ValueId of = joint.graph.outputs()[o].value;
    const ir::Type type = joint.graph.type(of);
    joint.tangents.push_back(joint.graph.add_input(ir::Type::tensor(type.dtype, type.shape, type.device)));
    seeds.push_back({of, joint.tangents.back()});
  }
  joint.gradients = differentiate(joint.graph, seeds, joint.wanted);
  return joint;
}

/// Whether a node may run a second time, and costs about as much as reading what it gives.
bool is_cheap(const ir::Graph& graph, NodeId id) {
  const ir::Node& node = graph.node(id);
  const ops::Op* op = ops::find_op(node.op);
  if (!op || node.results.size() != 1 || !node.regions.empty() || !is_pure(graph, node) || may_raise(node)) return false;
  return op->body || op->traits.creates || node.op == "constant" || ops::is_view(graph, id);
}

/// What the gradients need of the forward: values that are kept, and nodes that run again.
class Cut {
 public:
  explicit Cut(const Joint& joint) : graph_(joint.graph) {
    const auto nodes = graph_.nodes();
    for (std::size_t i = 0; i < joint.forward_nodes; ++i) {
      forward_.insert(nodes[i]);
      if (is_cheap(graph_, nodes[i])) continue;
      for (ValueId v : graph_.node(nodes[i]).operands) stored_.insert(v);
    }
    for (const ir::Output& o : graph_.outputs())
      if (o.kind == ir::OutputKind::result) stored_.insert(o.value);
      else if (o.kind == ir::OutputKind::update) overwritten_.insert(o.target);
    std::vector<ValueId> ends;
    for (const auto& gradient : joint.gradients)
      if (gradient) ends.push_back(*gradient);
    for (ValueId v : ends) need(v);
    for (std::size_t i = nodes.size(); i-- > 0;)
      if (again_.has(nodes[i]))
        for (ValueId v : graph_.node(nodes[i]).operands) need(v);
  }

  /// Whether the backward graph has the node.
  bool runs_again(NodeId id) const { return again_.has(id); }
  const std::vector<ValueId>& kept_inputs() const { return inputs_; }
  const std::vector<ValueId>& kept() const { return kept_; }

 private:
  void need(ValueId v) {
    if (graph_.value(v).kind == ir::ValueKind::literal || !seen_.insert(v)) return;
    if (graph_.value(v).kind == ir::ValueKind::input) return (overwritten_.has(v) ? kept_ : inputs_).push_back(v);
    const NodeId node = graph_.value(v).node;
    const bool again = !forward_.has(node) || (is_cheap(graph_, node) && (!stored_.has(v) || ops::is_view(graph_, node) || graph_.node(node).op == "constant"));
    if (again) again_.insert(node);
    else kept_.push_back(v);
  }

  const ir::Graph& graph_;
  IdSet<NodeId> forward_, again_;
  IdSet<ValueId> stored_, overwritten_, seen_;  // stored: in memory anyway, since something reads it that is not computed element by element
  std::vector<ValueId> inputs_, kept_;
};

/// Copies nodes of one graph into another with the same symbols and constants.
class Copier {
 public:
  Copier(const ir::Graph& from, std::string name) : from_(from) {
    to_.name = std::move(name);
    for (const ir::SymbolInfo& symbol : from.symbols()) to_.add_symbol(symbol);
    for (const ir::Constant& constant : from.constants()) to_.add_constant(constant);
  }

  void add_input(ValueId v) { values_[v] = add_unread_input(v); }
  ValueId add_unread_input(ValueId v) { return to_.add_input(from_.type(v), from_.value(v).name); }

  void add_node(NodeId id) {
    const ir::Node& node = from_.node(id);
    if (!node.regions.empty()) throw Exception(error(Code::unsupported, "{} has no gradient: it has branches", node.op));
    std::vector<ValueId> operands;
    for (ValueId v : node.operands) operands.push_back(value(v));
    std::vector<ir::Type> types;
    for (ValueId v : node.results) types.push_back(from_.type(v));
    const NodeId made = to_.add_node(node.op, std::move(operands), node.attributes, std::move(types), node.location);
    for (std::size_t i = 0; i < node.results.size(); ++i) values_[node.results[i]] = to_.node(made).results[i];
  }

  ValueId value(ValueId v) {
    if (const auto known = values_.find(v); known != values_.end()) return known->second;
    TENON_CHECK(from_.value(v).kind == ir::ValueKind::literal, "a gradient reads value %{}, which was not kept", from_.value(v).name);
    return values_[v] = to_.add_literal(from_.value(v).literal);
  }

  ir::Graph take(std::vector<ir::Output> outputs) {
    to_.set_outputs(std::move(outputs));
    to_.drop_unused_constants();
    return std::move(to_);
  }

 private:
  const ir::Graph& from_;
  ir::Graph to_;
  std::unordered_map<ValueId, ValueId> values_;
};

/// What gradients of the gradients, which compute the forward again, need besides what is kept: random values, and those of foreign code.
std::vector<ValueId> never_again(const Joint& joint, std::span<const ValueId> kept) {
  const IdSet<ValueId> depending = depending_on(joint.graph, joint.wanted);
  IdSet<ValueId> there;
  for (ValueId v : kept)
    if (!depending.has(v)) there.insert(v);
  std::vector<ValueId> ends, found;
  for (const auto& gradient : joint.gradients)
    if (gradient) ends.push_back(*gradient);
  const IdSet<NodeId> needed = needed_by(joint.graph, ends, there);
  IdSet<ValueId> read;
  for (NodeId id : joint.graph.nodes())
    if (needed.has(id))
      for (ValueId v : joint.graph.node(id).operands)
        if (is_result(joint.graph, v) && !there.has(v) && joint.graph.type(v).is_tensor() && !is_pure(joint.graph, joint.graph.node(joint.graph.value(v).node)) && read.insert(v)) found.push_back(v);
  return found;
}

std::uint32_t place_of(std::span<const ValueId> values, ValueId value) {
  return static_cast<std::uint32_t>(std::ranges::find(values, value) - values.begin());
}

/// Outputs in groups: two are in one where a node between them and what is wanted belongs to both.
std::vector<std::vector<std::uint32_t>> groups_of(const ir::Graph& graph, std::span<const std::uint32_t> outputs, std::span<const ValueId> wanted) {
  std::vector<std::size_t> group(outputs.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  std::unordered_map<NodeId, std::size_t> first_output;  // that a node leads to
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueId end = graph.outputs()[outputs[i]].value;
    for (NodeId id : nodes_between(graph, {&end, 1}, wanted)) {
      const std::size_t other = group[first_output.try_emplace(id, i).first->second];
      std::ranges::replace(group, other, std::size_t{group[i]});
    }
  }
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::size_t g = 0; g < group.size(); ++g) {
    std::vector<std::uint32_t> members;
    for (std::size_t i = 0; i < group.size(); ++i)
      if (group[i] == g) members.push_back(outputs[i]);
    if (!members.empty()) groups.push_back(std::move(members));
  }
  return groups;
}

/// The values that a node between what is wanted and the outputs reads, or that are outputs: torch gives these a gradient, which may be 0.
IdSet<ValueId> read_between(const ir::Graph& graph, std::span<const std::uint32_t> outputs, std::span<const ValueId> wanted) {
  IdSet<ValueId> read;
  const std::vector<ValueId> ends = values_of(graph, outputs);
  for (ValueId v : ends) read.insert(v);
  for (NodeId id : nodes_between(graph, ends, wanted))
    for (ValueId v : graph.node(id).operands) read.insert(v);
  return read;
}

ValueId zeros(ir::Graph& graph, const ir::Type& type) {
  ops::NodeBuilder builder(graph);
  builder.on(type.device);
  return builder.one("full", {builder.literal(0.0)}, {{"dtype", type.dtype}, {"size", type.shape}});
}

/// The gradients of some outputs as a graph of its own. What it needs is added to the outputs of the forward.
BackwardGraph backward_of(ir::Graph& forward, std::vector<std::uint32_t> outputs, std::span<const std::uint32_t> wanted) {
  Joint joint = with_gradients(forward, outputs, wanted);
  const IdSet<ValueId> read = read_between(forward, outputs, joint.wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!joint.gradients[i] && read.has(joint.wanted[i])) joint.gradients[i] = zeros(joint.graph, joint.graph.type(joint.wanted[i]));
  const Cut cut(joint);
  BackwardGraph made;
  made.outputs = std::move(outputs);
  Copier backward(joint.graph, forward.name + "_backward");
  for (ValueId v : cut.kept_inputs()) {
    const std::uint32_t input = place_of(joint.inputs, v);
    if (input == joint.inputs.size()) continue;  // a tangent, which comes last
    made.kept_inputs.push_back(input);
    backward.add_input(v);
  }
  std::vector<ValueId> kept = cut.kept();
  for (ValueId v : never_again(joint, kept)) kept.push_back(v);
  for (ValueId v : kept) {
    const auto known = std::ranges::find_if(forward.outputs(), [&](const ir::Output& o) { return o.value == v && o.kind != ir::OutputKind::update; });
    made.kept_outputs.push_back(static_cast<std::uint32_t>(known - forward.outputs().begin()));
    if (known == forward.outputs().end()) forward.add_output({.value = v, .kind = ir::OutputKind::saved});
    backward.add_input(v);
  }
  for (ValueId v : joint.tangents) backward.add_input(v);
  for (NodeId id : joint.graph.nodes())
    if (cut.runs_again(id)) backward.add_node(id);
  std::vector<ir::Output> gradients;
  for (const auto& gradient : joint.gradients) {
    made.gradients.push_back(gradient ? std::optional(static_cast<std::uint32_t>(gradients.size())) : std::nullopt);
    if (gradient) gradients.push_back({.value = backward.value(*gradient)});
  }
  made.graph = backward.take(std::move(gradients));
  return made;
}

}  // namespace

DifferentiatedGraph with_backwards(const ir::Graph& graph, std::span<const std::uint32_t> outputs, std::span<const std::uint32_t> wanted) {
  DifferentiatedGraph made;
  made.forward = graph.clone();
  std::vector<ValueId> inputs;
  for (std::uint32_t i : wanted) inputs.push_back(made.forward.inputs()[i]);
  expand_between(made.forward, values_of(made.forward, outputs), inputs);
  for (std::vector<std::uint32_t>& group : groups_of(made.forward, outputs, inputs)) made.backwards.push_back(backward_of(made.forward, std::move(group), wanted));
  return made;
}

ir::Graph gradients_anew(const ir::Graph& graph, std::span<const std::uint32_t> outputs, std::span<const std::uint32_t> wanted, std::span<const std::uint32_t> kept) {
  Joint joint = with_gradients(graph, outputs, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!joint.gradients[i]) joint.gradients[i] = zeros(joint.graph, joint.graph.type(joint.wanted[i]));
  Copier anew(joint.graph, graph.name + "_gradients");
  for (ValueId v : joint.inputs) anew.add_input(v);
  IdSet<ValueId> read;
  const IdSet<ValueId> depending = depending_on(joint.graph, joint.wanted);
  for (ValueId v : values_of(joint.graph, kept)) {
    const bool again = depending.has(v) || !is_result(joint.graph, v) || !read.insert(v);
    if (again) anew.add_unread_input(v);
    else anew.add_input(v);
  }
  for (ValueId v : joint.tangents) anew.add_input(v);
  std::vector<ValueId> ends;
  for (const auto& gradient : joint.gradients) ends.push_back(*gradient);
  const IdSet<NodeId> needed = needed_by(joint.graph, ends, read);
  for (NodeId id : joint.graph.nodes()) {
    if (!needed.has(id)) continue;
    if (!is_pure(joint.graph, joint.graph.node(id))) throw Exception(error(Code::unsupported, "the gradient reads what {} gives, which is not computed again", joint.graph.node(id).op));
    anew.add_node(id);
  }
  std::vector<ir::Output> gradients;
  for (ValueId v : ends) gradients.push_back({.value = anew.value(v)});
  return anew.take(std::move(gradients));
}

}  // namespace tenon::rewrite
