// Faults in what the backend understands of the graph.
#include <algorithm>

#include "mutant.h"

namespace tenon::mutants {
namespace {

/// Runs `change` on every node.
template <class Change>
auto on_nodes(Change change) {
  return [change](ir::Graph& graph) {
    for (NodeId id : std::vector<NodeId>(graph.nodes().begin(), graph.nodes().end())) change(graph, graph.mutable_node(id));
  };
}

ir::Attribute* attribute(ir::Node& node, std::string_view name) {
  for (ir::NamedAttribute& a : node.attributes)
    if (a.name == name) return &a.value;
  return nullptr;
}

/// Reduces, slices, joins along the dimension beside the right one, where both have the same size and so nothing else shows.
void next_dim(ir::Graph& graph, ir::Node& node) {
  ir::Attribute* dim = attribute(node, "dim");
  if (!dim || node.operands.empty()) return;
  const auto rank = static_cast<std::int64_t>(graph.type(node.operands[0]).rank());
  if (rank < 2) return;
  const auto shifted = [rank](const ir::Dim& d) { return d.is_constant() ? ir::Dim((d.constant() + 1 + rank) % rank) : d; };
  if (auto* one = std::get_if<ir::Dim>(dim)) *one = shifted(*one);
  if (auto* several = std::get_if<std::vector<ir::Dim>>(dim)) std::ranges::transform(*several, several->begin(), shifted);
}

/// Changes a flag or a number that the op reads.
auto without(std::string_view name, ir::Attribute otherwise) {
  return on_nodes([name, otherwise](ir::Graph&, ir::Node& node) {
    if (ir::Attribute* a = attribute(node, name); a && a->index() == otherwise.index()) *a = otherwise;
  });
}

auto renamed(std::string_view from, std::string_view to) {
  return on_nodes([from, to](ir::Graph&, ir::Node& node) { if (node.op == from) node.op = to; });
}

}  // namespace

std::vector<Mutant> graph_faults() {
  return {
      {.name = "operands_exchanged", .graph = on_nodes([](ir::Graph& graph, ir::Node& node) {
         if (node.operands.size() == 2 && graph.type(node.operands[0]) == graph.type(node.operands[1])) std::swap(node.operands[0], node.operands[1]);
       })},
      {.name = "first_operand_twice", .graph = on_nodes([](ir::Graph& graph, ir::Node& node) {
         if (node.operands.size() == 2 && graph.type(node.operands[0]) == graph.type(node.operands[1])) node.operands[1] = node.operands[0];
       })},
      {.name = "second_node_reads_an_input", .graph = [](ir::Graph& graph) {
         if (graph.nodes().size() == 2 && graph.node(graph.nodes()[1]).op != "constant" && graph.node(graph.nodes()[0]).op != "constant")
           graph.mutable_node(graph.nodes()[1]).operands[0] = graph.inputs()[0];
       }},
      {.name = "wrong_dim", .graph = on_nodes(next_dim)},
      {.name = "correction_ignored", .graph = without("correction", ir::Dim(0))},
      {.name = "literal_ignored", .graph = on_nodes([](ir::Graph& graph, ir::Node& node) {
         for (ValueId operand : node.operands)
           if (graph.value(operand).kind == ir::ValueKind::literal && std::holds_alternative<double>(graph.value(operand).literal)) graph.mutable_value(operand).literal = 1.0;
       })},
      {.name = "le_as_lt", .graph = renamed("le", "lt")},
      {.name = "floor_as_trunc", .graph = renamed("floor", "trunc")},
      {.name = "remainder_as_fmod", .graph = renamed("remainder", "fmod")},
      {.name = "round_half_away", .graph = renamed("round", "floor")},
      {.name = "maximum_as_fmax", .graph = renamed("maximum", "fmax")},
      {.name = "argmax_as_argmin", .graph = renamed("argmax", "argmin")},
  };
}

}  // namespace tenon::mutants
