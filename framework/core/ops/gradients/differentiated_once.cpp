#include "core/ops/gradients/differentiated_once.h"

#include <utility>

namespace tenon::ops {
namespace {

bool refuses(const ir::Node& node) { return node.op == "no_gradient"; }

bool ends(const ir::Node& node) {
  const ir::Attribute* said = node.attribute("ends");
  return said && std::get<bool>(*said);
}

}  // namespace

ir::ValueId without_gradient(NodeBuilder& builder, ir::ValueId value, std::vector<ir::ValueId> by, std::string message, bool ends) {
  by.insert(by.begin(), value);
  return builder.one("no_gradient", std::move(by), {{"ends", ends}, {"message", std::move(message)}});
}

std::vector<Refused> refused_gradients(const ir::Graph& graph) {
  std::vector<Refused> found;
  for (ir::NodeId id : graph.nodes())
    if (const ir::Node& node = graph.node(id); refuses(node)) found.push_back({node.results[0], std::get<std::string>(*node.attribute("message")), ends(node)});
  return found;
}

ir::ValueId without_refusal(const ir::Graph& graph, ir::ValueId value) {
  while (graph.value(value).kind == ir::ValueKind::result && refuses(graph.node(graph.value(value).node))) value = graph.node(graph.value(value).node).operands[0];
  return value;
}

void drop_refusals(ir::Graph& graph, std::size_t first_node) {
  std::vector<ir::NodeId> dropped;
  for (ir::NodeId id : graph.nodes().subspan(first_node))
    if (refuses(graph.node(id))) dropped.push_back(id);
  for (ir::NodeId id : dropped) graph.replace_uses(graph.node(id).results[0], graph.node(id).operands[0]);
  graph.erase_nodes(dropped);
}

}  // namespace tenon::ops
