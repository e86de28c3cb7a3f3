#include "placed_graph.h"

#include <algorithm>

#include "core/rewrite/on_device.h"

namespace tenon::conformance {
namespace {

/// Constants cannot be changed: the nodes read others, of the device's type and with the same bytes.
void place_constants(ir::Graph& graph, ir::Device device) {
  for (const NodeId n : graph.nodes()) {
    ir::Node& node = graph.mutable_node(n);
    if (node.op != "constant") continue;
    const auto index = std::ranges::find(node.attributes, "index", &ir::NamedAttribute::name);
    if (index == node.attributes.end()) continue;
    ir::Constant constant = graph.constants()[static_cast<std::size_t>(std::get<ir::Dim>(index->value).constant())];
    constant.type.device = device;
    constant.name = {};
    graph.set_type(node.results[0], constant.type);
    index->value = ir::Dim(graph.add_constant(std::move(constant)).value);
  }
  graph.drop_unused_constants();
}

}  // namespace

ir::Graph placed_on(ir::Graph graph, ir::Device device) {
  if (device.is_host()) return graph;
  place_constants(graph, device);
  rewrite::place_on(graph, device);
  return graph;
}

}  // namespace tenon::conformance
