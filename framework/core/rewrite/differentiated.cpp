#include "core/rewrite/differentiated.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>

#include "core/base/error.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/gradients/differentiated_once.h"
#include "core/ops/gradients/own_gradients.h"
#include "core/ops/view.h"
#include "core/rewrite/differentiate.h"
#include "core/rewrite/gradient_sections.h"
#include "core/rewrite/id_set.h"
#include "core/rewrite/kept_beginnings.h"
#include "core/rewrite/kept_layouts.h"
#include "core/rewrite/never_chosen.h"
#include "core/rewrite/rewriter.h"
#include "core/rewrite/shared_nodes.h"

namespace tenon::rewrite {
namespace {

bool is_result(const ir::Graph& graph, ValueId v) { return graph.value(v).kind == ir::ValueKind::result; }

/// The nodes on which the values depend where some are given.
IdSet<NodeId> needed_by(const ir::Graph& graph, std::span<const ValueId> values, std::span<const ValueId> given) {
  IdSet<NodeId> needed;
  IdSet<ValueId> known;
  for (ValueId v : given) known.insert(v);
  const auto need = [&](ValueId v) {
    if (is_result(graph, v) && !known.has(v)) needed.insert(graph.value(v).node);
  };
  for (ValueId v : values) need(v);
  const auto nodes = graph.nodes();
  for (std::size_t i = nodes.size(); i-- > 0;)
    if (needed.has(nodes[i]))
      for (ValueId v : graph.node(nodes[i]).operands) need(v);
  return needed;
}

std::vector<ValueId> values_of(const ir::Graph& graph, std::span<const std::uint32_t> outputs) {
  std::vector<ValueId> values;
  for (std::uint32_t o : outputs) values.push_back(graph.outputs()[o].value);
  return values;
}

/// What joint graphs know these by.
std::vector<ValueId> without_own_gradients(const ir::Graph& graph, std::vector<ValueId> values) {
  for (ValueId& v : values) v = ops::without_own_gradient(graph, v);
  return values;
}

std::vector<std::uint32_t> numbers_from(std::size_t first, std::size_t count) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(first));
  return numbers;
}

/// What gradients of a section are taken of, and where they end.
struct Ends {
  std::vector<ValueId> results;
  std::span<const ValueId> wanted;  // of all sections
  std::vector<bool> reached;        // by wanted value: whether gradients of this section end there

  std::vector<ValueId> of_section() const {
    std::vector<ValueId> values;
    for (std::size_t w = 0; w < wanted.size(); ++w)
      if (reached[w]) values.push_back(wanted[w]);
    return values;
  }
};

Ends ends_of(const BackwardGraph& backward, std::span<const ValueId> wanted) {
  Ends ends{.results = {}, .wanted = wanted, .reached = {}};
  for (const BackwardGraph::Result& result : backward.results) ends.results.push_back(result.value);
  for (const auto& gradient : backward.gradients) ends.reached.push_back(gradient.has_value());
  return ends;
}

/// A graph with its gradients appended.
struct Joint {
  ir::Graph graph;
  std::size_t forward_nodes = 0;  // the first of its nodes are those of the forward, where that has no composite op to expand
  std::vector<ValueId> inputs, tangents, begun;   // begun: where gradients begin
  std::vector<NodeId> shared;                     // of the forward, which gradients of other nodes would compute themselves
  std::vector<std::optional<ValueId>> gradients;  // by wanted value
  std::vector<NodeId> reading, others;            // of the forward, that gradients have gone through: computed from what these read or give, or not
};

void drop_own_gradients(Joint& joint) {  // which have said theirs, and what refuses gradients of these, which nobody asks for
  std::vector<ValueId> gradients;
  IdSet<NodeId> forward;
  for (NodeId id : joint.graph.nodes().first(joint.forward_nodes)) forward.insert(id);
  for (std::optional<ValueId>& gradient : joint.gradients)
    if (gradient) gradients.push_back(*(gradient = ops::without_own_gradient(joint.graph, *gradient)));
  ops::drop_own_gradients(joint.graph, gradients);
  joint.forward_nodes = static_cast<std::size_t>(std::ranges::count_if(joint.graph.nodes(), [&](NodeId id) { return forward.has(id); }));
  for (std::optional<ValueId>& gradient : joint.gradients)
    if (gradient) gradient = ops::without_refusal(joint.graph, *gradient);
  ops::drop_refusals(joint.graph, joint.forward_nodes);
}

ValueId zeros(ir::Graph& graph, const ir::Type& type) {
  ops::NodeBuilder builder(graph);
  builder.on(type.device);
  return builder.one("full", {builder.literal(0.0)}, {{"dtype", type.dtype}, {"size", type.shape}});
}

/// `given`: by result, whether it has a gradient; all have one where it is empty.
Joint with_gradients(const ir::Graph& graph, const Ends& ends, const std::vector<bool>& given = {}, bool for_more = false) {
  Joint joint;
  joint.graph = graph.clone();
  joint.inputs.assign(graph.inputs().begin(), graph.inputs().end());
  joint.forward_nodes = joint.graph.nodes().size();
  std::vector<Seed> seeds;
  for (std::size_t k = 0; k < ends.results.size(); ++k) {
    const ir::Type type = joint.graph.type(ends.results[k]);
    joint.tangents.push_back(joint.graph.add_input(ir::Type::tensor(type.dtype, type.shape, type.device)));
    if (given.empty() || given[k]) seeds.push_back({ends.results[k], joint.tangents.back()});
  }
  const std::vector<ValueId> wanted = ends.of_section();
  if (seeds.empty())
    for (ValueId v : given_zeros(graph, ends.results, wanted)) seeds.push_back({v, zeros(joint.graph, joint.graph.type(v))});
  for (const Seed& seed : seeds) joint.begun.push_back(seed.of);
  GradientNodes by_node(joint.graph);
  const auto note = [&](NodeId id, bool reads) {
    (reads ? joint.reading : joint.others).push_back(id);
    by_node.note(joint.graph, id);
  };
  const auto found = differentiate(joint.graph, seeds, wanted, stops_at(graph, wanted), {}, note, for_more);
  auto next = found.begin();
  for (bool reached : ends.reached) joint.gradients.push_back(reached ? *next++ : std::nullopt);
  if (!for_more) drop_own_gradients(joint);
  for (const SharedNode& shared : share_nodes(joint.graph, joint.forward_nodes, joint.gradients))
    if (!by_node.is_gradient(shared.unread, shared.read)) joint.shared.push_back(shared.read);
  return joint;
}

/// What the gradients read where some values are kept, and the nodes that run for them.
class Needed {
 public:
  Needed(const Joint& joint, std::span<const ValueId> kept, std::span<const ValueId> besides = {}) : graph_(joint.graph) {
    for (ValueId v : kept) may_keep_.insert(v);
    for (ValueId v : besides) need(v);
    for (const auto& gradient : joint.gradients)
      if (gradient) need(*gradient);
    const auto nodes = graph_.nodes();
    for (std::size_t i = nodes.size(); i-- > 0;)
      if (runs_.has(nodes[i]))
        for (ValueId v : graph_.node(nodes[i]).operands) need(v);
  }

  bool runs(NodeId id) const { return runs_.has(id); }
  /// Whether the value is found by running its node.
  bool computes(ValueId v) const { return is_result(graph_, v) && !may_keep_.has(v) && runs_.has(graph_.value(v).node); }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& kept() const { return kept_; }

 private:
  void need(ValueId v) {
    if (graph_.value(v).kind == ir::ValueKind::literal || !seen_.insert(v)) return;
    if (may_keep_.has(v)) kept_.push_back(v);
    else if (is_result(graph_, v)) runs_.insert(graph_.value(v).node);
    else inputs_.push_back(v);
  }

  const ir::Graph& graph_;
  IdSet<NodeId> runs_;
  IdSet<ValueId> may_keep_, seen_;
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

  void add_input(ValueId v) { values_[v] = to_.add_input(from_.type(v), from_.value(v).name); }

  /// An output of the forward: of an input it is a copy, which lies in memory of its own.
  void add_kept(ValueId v) {
    add_input(v);
    if (from_.value(v).kind == ir::ValueKind::input) to_.set_strides(values_[v], std::nullopt);
  }

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

std::uint32_t place_of(std::span<const ValueId> values, ValueId value) {
  return static_cast<std::uint32_t>(std::ranges::find(values, value) - values.begin());
}

/// The values that a node between what is wanted and the results reads, or that are results: torch gives these a gradient, which may be 0.
IdSet<ValueId> read_between(const ir::Graph& graph, std::span<const ValueId> results, std::span<const ValueId> wanted) {
  IdSet<ValueId> read;
  for (ValueId v : results) read.insert(v);
  for (NodeId id : nodes_between(graph, results, wanted, stops_at(graph, wanted)))
    for (ValueId v : graph.node(id).operands) read.insert(v);
  return read;
}

/// With zeros for what is wanted and read, but has no gradient.
void add_zeros(Joint& joint, const ir::Graph& forward, const Ends& ends) {
  const IdSet<ValueId> read = read_between(forward, ends.results, ends.of_section());
  for (std::size_t w = 0; w < ends.wanted.size(); ++w)
    if (!joint.gradients[w] && ends.reached[w] && read.has(ends.wanted[w])) joint.gradients[w] = zeros(joint.graph, joint.graph.type(ends.wanted[w]));
}

/// Adds the gradients of the joint graph to those of a backward graph, as its outputs.
ir::Graph with_outputs(Copier& backward, const Joint& joint, const Needed& needed, std::vector<std::optional<std::uint32_t>>& gradients) {
  IdSet<NodeId> added;
  std::vector<NodeId> waiting;
  const auto nodes = joint.graph.nodes();
  const auto add = [&](NodeId node) {  // what is computed again comes where it is first read: it needs memory from then on
    waiting.push_back(node);
    while (!waiting.empty()) {
      const NodeId id = waiting.back();
      const std::size_t before = waiting.size();
      for (ValueId v : joint.graph.node(id).operands)
        if (needed.computes(v) && !added.has(joint.graph.value(v).node)) waiting.push_back(joint.graph.value(v).node);
      if (waiting.size() > before) continue;
      waiting.pop_back();
      if (added.insert(id)) backward.add_node(id);
    }
  };
  for (std::size_t i = joint.forward_nodes; i < nodes.size(); ++i)
    if (needed.runs(nodes[i])) add(nodes[i]);
  for (const auto& gradient : joint.gradients)
    if (gradient && needed.computes(*gradient)) add(joint.graph.value(*gradient).node);
  std::vector<ir::Output> outputs;
  for (const auto& gradient : joint.gradients) {
    gradients.push_back(gradient ? std::optional(static_cast<std::uint32_t>(outputs.size())) : std::nullopt);
    if (gradient) outputs.push_back({.value = backward.value(*gradient)});
  }
  return backward.take(std::move(outputs));
}

/// Whether gradients are computed with a result as torch computes them: a quotient it divides anew.
bool gradients_read(const Joint& joint, const Needed& needed, ValueId value) {
  if (!is_result(joint.graph, value) || joint.graph.node(joint.graph.value(value).node).op == "div") return false;
  const std::span<const NodeId> nodes = joint.graph.nodes();
  return std::any_of(nodes.begin() + static_cast<std::ptrdiff_t>(joint.forward_nodes), nodes.end(), [&](NodeId id) {
    return needed.runs(id) && std::ranges::find(joint.graph.node(id).operands, value) != joint.graph.node(id).operands.end();
  });
}

/// What the gradients of gradients read that these themselves do not, where they read what the forward has computed in their place: its operands.
std::vector<ValueId> read_again(const Joint& joint, std::span<const ValueId> gradients) {
  const IdSet<NodeId> needed = needed_by(joint.graph, gradients, {});
  std::vector<ValueId> values;
  for (NodeId id : joint.shared)
    if (needed.has(id)) std::ranges::copy(joint.graph.node(id).operands, std::back_inserter(values));
  return values;
}

/// The gradients of some results as a graph of its own. What it needs is added to the outputs of the forward.
BackwardGraph backward_of(ir::Graph& forward, std::vector<BackwardGraph::Result> results, const Ends& ends, const Keeping& keeping) {
  Joint joint = with_gradients(forward, ends);
  add_zeros(joint, forward, ends);
  std::vector<ValueId> gradients;
  for (const auto& gradient : joint.gradients)
    if (gradient) gradients.push_back(*gradient);
  const std::vector<ValueId> besides = read_again(joint, gradients);
  gradients.insert(gradients.end(), besides.begin(), besides.end());
  const std::vector<ValueId> kept = without_beginnings(forward, kept_values({joint.graph, joint.forward_nodes, gradients}, keeping));
  joint.forward_nodes += read_parts_of_kept(joint.graph, joint.forward_nodes, kept);
  const Needed needed(joint, kept, besides);
  const auto is_number = [&](const ir::Output& o) { return std::ranges::find(keeping.numbers, static_cast<std::uint32_t>(&o - forward.outputs().data())) != keeping.numbers.end(); };
  const auto output_of = [&](ValueId v) {
    return std::ranges::find_if(forward.outputs(), [&](const ir::Output& o) { return ops::without_own_gradient(forward, o.value) == v && o.kind != ir::OutputKind::update && !is_number(o); });
  };
  std::vector<ValueId> saved;
  std::ranges::copy_if(needed.kept(), std::back_inserter(saved), [&](ValueId v) { return output_of(v) == forward.outputs().end(); });
  lay_out_kept(forward, saved);
  for (ValueId v : saved) joint.graph.set_strides(v, forward.type(v).strides);
  BackwardGraph made;
  made.results = std::move(results);
  made.asked_once = keeping.lets_go ? keeping.lets_go(joint.reading, joint.others) : !joint.reading.empty();
  made.reads_result = made.results.size() == 1 && gradients_read(joint, needed, ops::without_own_gradient(forward, made.results[0].value));
  Copier backward(joint.graph, forward.name + "_backward");
  for (ValueId v : needed.inputs()) {
    const std::uint32_t input = place_of(joint.inputs, v);
    if (input == joint.inputs.size()) continue;  // a tangent, which comes last
    made.kept_inputs.push_back(input);
    backward.add_input(v);
  }
  for (std::uint32_t input : ops::kept_for_own_gradients(forward, nodes_between(forward, ends.results, ends.of_section(), stops_at(forward, ends.of_section())))) {
    if (std::ranges::find(made.kept_inputs, input) != made.kept_inputs.end()) continue;
    made.kept_inputs.push_back(input);
    backward.add_input(joint.inputs[input]);
  }
  for (ValueId v : needed.kept()) {
    const auto known = output_of(v);
    made.kept_outputs.push_back(static_cast<std::uint32_t>(known - forward.outputs().begin()));
    if (known == forward.outputs().end()) forward.add_output({.value = v, .kind = ir::OutputKind::saved});
    backward.add_kept(v);
  }
  for (ValueId v : joint.tangents) backward.add_input(v);
  made.graph = with_outputs(backward, joint, needed, made.gradients);
  return made;
}

/// The outputs that are a section's results, each with all its numbers, and what it hands on.
std::vector<BackwardGraph::Result> results_of(const ir::Graph& forward, std::span<const std::uint32_t> outputs, const GradientSection& section) {
  std::vector<BackwardGraph::Result> results;
  for (ValueId v : section.results) {
    const std::size_t before = results.size();
    for (std::uint32_t o : outputs)
      if (forward.outputs()[o].value == v) results.push_back({v, o});
    if (results.size() == before) results.push_back({v, std::nullopt});
  }
  return results;
}

std::vector<ValueId> each_once(std::vector<ValueId> values) {
  IdSet<ValueId> seen;
  std::erase_if(values, [&](ValueId v) { return !seen.insert(v); });
  return values;
}

InnerValue inner_value(const ir::Graph& forward, ValueId value, std::span<const std::uint32_t> outputs, std::span<const ViewedResult> views) {
  const auto output = std::ranges::find_if(outputs, [&](std::uint32_t o) { return forward.outputs()[o].value == value; });
  if (output != outputs.end()) return {.output = *output, .view = {}};
  const auto view = std::ranges::find(views, value, &ViewedResult::value);
  return {.output = {}, .view = view == views.end() ? std::nullopt : std::optional(static_cast<std::uint32_t>(view - views.begin()))};
}

}  // namespace

DifferentiatedGraph with_backwards(const ir::Graph& graph, std::span<const std::uint32_t> outputs, std::span<const ValueId> wanted, const Keeping& keeping,
                                   std::span<const ViewOfResult> views) {
  DifferentiatedGraph made;
  made.forward = graph.clone();
  made.wanted.assign(wanted.begin(), wanted.end());
  std::vector<ViewedResult> viewed;
  for (const ViewOfResult& view : views) viewed.push_back({view.value, {}});
  expand_between(made.forward, values_of(made.forward, outputs), made.wanted, {}, [&](ValueId from, ValueId to) {
    std::ranges::replace(made.wanted, from, to);
    for (ViewedResult& view : viewed)
      if (view.value == from) view.value = to;
  });
  for (std::size_t v = 0; v < views.size(); ++v)
    if (views[v].output) viewed[v].of = made.forward.outputs()[*views[v].output].value;
  const std::vector<GradientSection> sections = gradient_sections(made.forward, each_once(values_of(made.forward, outputs)), made.wanted, viewed);
  for (const GradientSection& section : sections)
    for (ValueId v : section.sources) {
      if (std::ranges::find(made.wanted, v) != made.wanted.end()) continue;
      made.wanted.push_back(v);
      made.inner.push_back(inner_value(made.forward, v, outputs, viewed));
    }
  for (const GradientSection& section : sections) {
    std::vector<BackwardGraph::Result> results = results_of(made.forward, outputs, section);
    Ends ends{.results = {}, .wanted = made.wanted, .reached = {}};
    for (const BackwardGraph::Result& result : results) ends.results.push_back(result.value);
    for (std::size_t w = 0; w < made.wanted.size(); ++w) ends.reached.push_back(w < wanted.size() || std::ranges::find(section.sources, made.wanted[w]) != section.sources.end());
    made.backwards.push_back(backward_of(made.forward, std::move(results), ends, keeping));
  }
  return made;
}

BackwardGraph part_of(const ir::Graph& forward, const BackwardGraph& whole, std::span<const ValueId> wanted, const std::vector<bool>& given,
                      const std::vector<bool>& asked) {
  const Ends ends = ends_of(whole, wanted);
  Joint joint = with_gradients(forward, ends, given);
  add_zeros(joint, forward, {.results = joint.begun, .wanted = ends.wanted, .reached = ends.reached});
  for (std::size_t w = 0; w < wanted.size(); ++w)
    if (!asked[w]) joint.gradients[w].reset();
  const std::vector<ValueId> kept = without_own_gradients(forward, values_of(forward, whole.kept_outputs));
  joint.forward_nodes += read_parts_of_kept(joint.graph, joint.forward_nodes, kept);
  const Needed needed(joint, kept);
  BackwardGraph made{.graph = {}, .results = whole.results, .kept_inputs = whole.kept_inputs, .kept_outputs = whole.kept_outputs, .gradients = {}, .reads_result = whole.reads_result, .asked_once = whole.asked_once};
  Copier backward(joint.graph, forward.name + "_backward");
  for (std::uint32_t i : whole.kept_inputs) backward.add_input(joint.inputs[i]);
  for (ValueId v : kept) backward.add_kept(v);
  for (ValueId v : joint.tangents) backward.add_input(v);
  made.graph = with_outputs(backward, joint, needed, made.gradients);
  return made;
}

ir::Graph gradients_anew(const ir::Graph& forward, const BackwardGraph& of, std::span<const ValueId> wanted, const std::vector<bool>& given) {
  const Ends ends = ends_of(of, wanted);
  Joint joint = with_gradients(forward, ends, given, true);
  std::vector<ir::Output> outputs;
  for (std::size_t w = 0; w < wanted.size(); ++w)
    if (of.gradients[w]) outputs.push_back({.value = joint.gradients[w] ? *joint.gradients[w] : zeros(joint.graph, joint.graph.type(wanted[w]))});
  for (ValueId v : values_of(forward, of.kept_outputs)) outputs.push_back({.value = v, .kind = ir::OutputKind::saved});
  joint.graph.set_outputs(std::move(outputs));
  return std::move(joint.graph);
}

ir::Graph from_outputs(const ir::Graph& from, std::size_t first, std::size_t count) {
  ir::Graph graph = from.clone();
  ops::drop_own_gradients(graph);
  read_past_never_chosen(graph);
  read_parts_of_kept(graph, graph.nodes().size(), values_of(graph, numbers_from(first, count)));
  std::vector<ValueId> given, ends;
  std::vector<ir::Output> outputs;
  for (std::size_t o = 0; o < graph.outputs().size(); ++o)
    if (o >= first && o < first + count) given.push_back(graph.outputs()[o].value);
    else outputs.push_back(graph.outputs()[o]);
  for (const ir::Output& o : outputs) ends.push_back(o.value);
  const IdSet<NodeId> needed = needed_by(graph, ends, given);
  Copier copier(graph, graph.name);
  for (ValueId v : graph.inputs()) copier.add_input(v);
  for (ValueId v : given) copier.add_kept(v);
  for (NodeId id : graph.nodes()) {
    if (!needed.has(id)) continue;
    if (!is_pure(graph, graph.node(id)) && !ops::is_gradient_call(graph.node(id))) throw Exception(error(Code::unsupported, "it reads what {} gives, which is not computed again", graph.node(id).op));
    copier.add_node(id);
  }
  for (ir::Output& o : outputs) o.value = copier.value(o.value);
  return copier.take(std::move(outputs));
}

}  // namespace tenon::rewrite
