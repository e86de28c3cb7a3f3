#include "core/ops/gradients/own_gradients.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/ops/gradients/differentiated_once.h"
#include "core/ops/gradients/linear.h"
#include "core/ops/op.h"

namespace tenon::ops {
namespace {

using ir::NodeId;
using ir::ValueId;

const ir::Node& node_of(const ir::Graph& graph, ValueId value) { return graph.node(graph.value(value).node); }

bool is_result(const ir::Graph& graph, ValueId value) { return graph.value(value).kind == ir::ValueKind::result; }

/// The nodes that compute values from those that are known, in their order.
std::vector<NodeId> nodes_behind(const ir::Graph& graph, std::span<const ValueId> values, const std::unordered_map<ValueId, ValueId>& known) {
  std::unordered_set<std::uint32_t> wanted;
  std::vector<ValueId> left(values.begin(), values.end());
  while (!left.empty()) {
    const ValueId v = left.back();
    left.pop_back();
    if (known.contains(v) || !is_result(graph, v) || !wanted.insert(graph.value(v).node.value).second) continue;
    const ir::Node& node = node_of(graph, v);
    left.insert(left.end(), node.operands.begin(), node.operands.end());
  }
  std::vector<NodeId> nodes;
  std::ranges::copy_if(graph.nodes(), std::back_inserter(nodes), [&](NodeId id) { return wanted.contains(id.value); });
  return nodes;
}

/// Appends copies of the nodes that compute some values, from what `values` says of others.
void copy_behind(ir::Graph& graph, std::span<const ValueId> ends, std::unordered_map<ValueId, ValueId>& values) {
  for (NodeId id : nodes_behind(graph, ends, values)) {
    const ir::Node node = graph.node(id);
    if (!node.regions.empty()) throw Exception(error(Code::unsupported, "{} has no gradient: it has branches", node.op));
    std::vector<ValueId> operands;
    std::vector<ir::Type> types;
    for (ValueId v : node.operands) operands.push_back(values.contains(v) ? values.at(v) : v);
    for (ValueId v : node.results) types.push_back(graph.type(v));
    const NodeId made = graph.add_node(node.op, std::move(operands), node.attributes, std::move(types), node.location);
    for (std::size_t k = 0; k < node.results.size(); ++k) values[node.results[k]] = graph.node(made).results[k];
  }
}

/// The tangent of a result that has no gradient.
ValueId absent_tangent(NodeBuilder& builder, const ir::Type& type, OwnGradientParts::Absent absent) {
  builder.on(type.device);
  return builder.full(0.0, type.dtype, absent == OwnGradientParts::Absent::left_out ? ir::Shape{ir::Dim(0)} : type.shape);
}

/// Erases nodes that nothing reads among those that compute the given values. How many.
std::size_t erase_unread(ir::Graph& graph, std::vector<ValueId> values, std::span<const ValueId> read) {
  std::vector<std::size_t> readers(graph.value_capacity());
  for (ValueId v : read) ++readers[v.value];
  for (NodeId id : graph.nodes())
    for (ValueId v : graph.node(id).operands) ++readers[v.value];
  for (const ir::Output& output : graph.outputs()) ++readers[output.value.value];
  std::vector<NodeId> unread;
  std::unordered_set<std::uint32_t> seen;
  while (!values.empty()) {
    const ValueId v = values.back();
    values.pop_back();
    if (!is_result(graph, v)) continue;
    const ir::Node& node = node_of(graph, v);
    if (std::ranges::any_of(node.results, [&](ValueId r) { return readers[r.value] > 0; }) || !seen.insert(graph.value(v).node.value).second) continue;
    unread.push_back(graph.value(v).node);
    for (ValueId operand : node.operands) {
      --readers[operand.value];
      values.push_back(operand);
    }
  }
  graph.erase_nodes(unread);
  return unread.size();
}

/// A gradient that depends on those that it was computed from, and has none.
ValueId differentiated_no_more(NodeBuilder& builder, ValueId gradient, std::span<const ValueId> given, bool once) {
  std::vector<ValueId> by;
  std::ranges::copy_if(given, std::back_inserter(by), [](ValueId v) { return static_cast<bool>(v); });
  builder.on(builder.graph().type(gradient).device);
  return without_gradient(builder, builder.one("detach", {gradient}), std::move(by),
                          once ? "trying to differentiate twice a function that was marked with @once_differentiable"
                               : "the gradient of a torch.autograd.Function in the gradient of another one is not differentiated; leave the function that applies it to torch (tenon.disable)",
                          once);
}

OwnGradientParts::Absent absent_of(const ir::Attributes& attributes) {
  const auto found = std::ranges::find(attributes, std::string_view("absent"), [](const ir::NamedAttribute& a) { return std::string_view(a.name); });
  const auto* text = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->value);
  using Absent = OwnGradientParts::Absent;
  for (const auto& [name, absent] : {std::pair<std::string_view, Absent>{"zeros", Absent::zeros}, {"none", Absent::none}, {"left_out", Absent::left_out}})
    if (text && *text == name) return absent;
  return Absent::unknown;
}

}  // namespace

std::optional<OwnGradientParts> OwnGradientParts::of(std::span<const ValueId> operands, const ir::Attributes& attributes) {
  const auto number = [&](std::string_view name) {
    const auto found = std::ranges::find(attributes, name, [](const ir::NamedAttribute& a) { return std::string_view(a.name); });
    const auto* dim = found == attributes.end() ? nullptr : std::get_if<ir::Dim>(&found->value);
    return dim && dim->is_constant() && dim->constant() >= 0 ? static_cast<std::size_t>(dim->constant()) : SIZE_MAX / 8;
  };
  const auto flag = [&](std::string_view name) {
    const auto found = std::ranges::find(attributes, name, [](const ir::NamedAttribute& a) { return std::string_view(a.name); });
    const bool* value = found == attributes.end() ? nullptr : std::get_if<bool>(&found->value);
    return value && *value;
  };
  const std::size_t results = number("results"), inputs = number("inputs"), kept = number("kept"), read = number("read");
  if (std::ranges::max({results, inputs, kept, read}) >= SIZE_MAX / 8 || operands.size() != 2 * (results + inputs) + kept + read) return std::nullopt;
  OwnGradientParts parts;
  for (const auto& [part, count] : {std::pair{&parts.results, results}, {&parts.inputs, inputs}, {&parts.kept, kept}, {&parts.read, read}, {&parts.tangents, results}, {&parts.gradients, inputs}}) {
    *part = operands.first(count);
    operands = operands.subspan(count);
  }
  parts.again = flag("again");
  parts.once = flag("once");
  parts.absent = absent_of(attributes);
  return parts;
}

OwnGradientParts OwnGradientParts::of(const ir::Node& node) { return of(node.operands, node.attributes).value(); }

std::vector<ValueId> own_gradients(NodeBuilder& builder, const OwnGradientParts& parts, std::span<const ValueId> results, std::span<const ValueId> given, bool again) {
  ir::Graph& graph = builder.graph();
  const bool refused = again && !parts.again;
  again = again && parts.again;
  const auto behind = [&](ValueId v) {
    if (!is_result(graph, v) || node_of(graph, v).op != "detach") throw Exception(error(Code::unsupported, "own_gradient has no gradient: it is not behind detach"));
    return node_of(graph, v).operands[0];
  };
  std::unordered_map<ValueId, ValueId> values;
  for (ValueId v : parts.read) values[behind(v)] = behind(v);
  for (std::size_t k = 0; k < parts.results.size(); ++k) {
    values[parts.tangents[k]] = given[k] ? given[k] : absent_tangent(builder, graph.type(results[k]), parts.absent);
    if (again) values[parts.results[k]] = results[k];  // what is computed from a result is differentiated through it
  }
  std::vector<ValueId> ends;
  for (ValueId v : parts.gradients) ends.push_back(behind(v));
  if (again && !are_linear(graph, ends, parts.tangents))
    throw Exception(error(Code::unsupported, "gradients of gradients through a torch.autograd.Function whose backward is not linear in its gradient (it adds something, or bounds it): torch hands it "
                                             "the sum of what comes from both, a compiled function each alone; leave the function that applies it to torch (tenon.disable)"));
  copy_behind(graph, ends, values);
  const std::size_t first = parts.results.size();
  std::vector<ValueId> found(2 * (first + ends.size()) + parts.kept.size() + parts.read.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto copied = values.find(ends[i]);
    found[first + i] = copied == values.end() ? ends[i] : copied->second;
    if (refused) found[first + i] = differentiated_no_more(builder, found[first + i], given, parts.once);
  }
  return found;
}

std::vector<std::uint32_t> kept_for_own_gradients(const ir::Graph& graph, std::span<const NodeId> nodes) {
  const auto is_written = [&](ValueId input) { return std::ranges::any_of(graph.outputs(), [&](const ir::Output& o) { return o.kind == ir::OutputKind::update && o.target == input; }); };
  std::vector<std::uint32_t> kept;
  for (NodeId id : nodes) {
    if (!is_own_gradient(graph.node(id))) continue;
    for (ValueId v : OwnGradientParts::of(graph.node(id)).kept)
      if (const ValueId input = node_of(graph, v).operands[0]; !is_written(input)) kept.push_back(graph.value(input).index);
  }
  return kept;
}

ValueId without_own_gradient(const ir::Graph& graph, ValueId value) {
  if (!is_result(graph, value) || !is_own_gradient(node_of(graph, value))) return value;
  return node_of(graph, value).operands[graph.value(value).index];
}

std::size_t drop_own_gradients(ir::Graph& graph, std::span<const ValueId> read) {
  std::vector<ValueId> freed;
  std::vector<NodeId> dropped;
  for (NodeId id : graph.nodes())
    if (is_own_gradient(graph.node(id))) dropped.push_back(id);
  for (NodeId id : dropped) {
    const ir::Node node = graph.node(id);
    for (std::size_t k = 0; k < node.results.size(); ++k) graph.replace_uses(node.results[k], graph.node(id).operands[k]);
    std::ranges::copy(graph.node(id).operands, std::back_inserter(freed));
  }
  graph.erase_nodes(dropped);
  return dropped.size() + erase_unread(graph, std::move(freed), read);
}

}  // namespace tenon::ops
