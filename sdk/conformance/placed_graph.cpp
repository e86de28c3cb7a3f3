#include "placed_graph.h"

#include <algorithm>

#include "core/ops/catalog.h"

namespace tenon::conformance {
namespace {

void place_value(ir::Graph& graph, ValueId v, ir::Device device) {
  ir::Type type = graph.type(v);
  if (!type.is_tensor()) return;
  type.device = device;
  graph.set_type(v, std::move(type));
}

void set_attribute(ir::Node& node, const char* name, ir::Attribute value) {
  const auto found = std::ranges::find_if(node.attributes, [&](const auto& attribute) { return attribute.name == name; });
  if (found != node.attributes.end()) found->value = std::move(value);
  else node.attributes.push_back({name, std::move(value)});
  std::ranges::sort(node.attributes, {}, [](const auto& attribute) { return std::string_view(attribute.name); });
}

/// Constants cannot be changed: the nodes read others, of the device's type and with the same bytes.
void place_constants(ir::Graph& graph, ir::Device device) {
  for (const NodeId n : graph.nodes()) {
    ir::Node& node = graph.mutable_node(n);
    const ir::Attribute* index = node.op == "constant" ? node.attribute("index") : nullptr;
    if (!index) continue;
    ir::Constant constant = graph.constants()[static_cast<std::size_t>(std::get<ir::Dim>(*index).constant())];
    constant.type.device = device;
    constant.name = {};
    set_attribute(node, "index", ir::Dim(graph.add_constant(std::move(constant)).value));
  }
  graph.drop_unused_constants();
}

void place_nodes(ir::Graph& graph, ir::Device device) {
  for (const ValueId input : graph.inputs()) place_value(graph, input, device);
  for (const NodeId n : graph.nodes()) {
    ir::Node& node = graph.mutable_node(n);
    for (const ValueId result : node.results) place_value(graph, result, device);
    if (const ops::Op* op = ops::find_op(node.op); op && (op->traits.creates || op->traits.copies)) set_attribute(node, "device", ir::device_text(device));
    for (const RegionId region : node.regions) place_nodes(graph.mutable_region(region), device);
  }
}

}  // namespace

ir::Graph placed_on(ir::Graph graph, ir::Device device) {
  if (device.is_host()) return graph;
  place_constants(graph, device);
  place_nodes(graph, device);
  return graph;
}

}  // namespace tenon::conformance
