#include "core/rewrite/on_device.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"

namespace tenon::rewrite {
namespace {

bool is_constant(const ir::Node& node) { return node.op == "constant"; }

void place(ir::Graph& graph, ValueId v, ir::Device device) {
  ir::Type type = graph.type(v);
  if (!type.is_tensor()) return;
  type.device = device;
  graph.set_type(v, std::move(type));
}

void say_device(ir::Node& node, ir::Device device) {
  const auto said = std::ranges::find(node.attributes, "device", &ir::NamedAttribute::name);
  if (said != node.attributes.end()) said->value = ir::device_text(device);
  else node.attributes.push_back({"device", ir::device_text(device)});
  std::ranges::sort(node.attributes, {}, [](const ir::NamedAttribute& a) { return std::string_view(a.name); });
}

/// Lets readers of constants read copies on the device.
void copy_constants(ir::Graph& graph, ir::Device device) {
  std::vector<NodeId> constants;
  for (NodeId n : graph.nodes())
    if (is_constant(graph.node(n))) constants.push_back(n);
  for (NodeId n : constants) {
    const ValueId here = graph.node(n).results[0];
    const std::vector<NodeId> readers = graph.users()[here.value];
    const auto first = std::ranges::find_if(graph.nodes(), [&](NodeId id) { return std::ranges::find(readers, id) != readers.end(); });
    ops::NodeBuilder builder(graph, first == graph.nodes().end() ? std::optional<NodeId>() : *first);
    const ValueId there = builder.to_device(here, device);
    for (NodeId reader : readers) std::ranges::replace(graph.mutable_node(reader).operands, here, there);
    std::vector<ir::Output> outputs(graph.outputs().begin(), graph.outputs().end());
    for (ir::Output& output : outputs)
      if (output.value == here) output.value = there;
    graph.set_outputs(std::move(outputs));
  }
}

bool has_constants_in_regions(const ir::Graph& graph) {
  for (std::size_t r = 0; r < graph.region_capacity(); ++r) {
    const ir::Graph& region = graph.region(RegionId(r));
    if (std::ranges::any_of(region.nodes(), [&](NodeId n) { return is_constant(region.node(n)); }) || has_constants_in_regions(region)) return true;
  }
  return false;
}

}  // namespace

void place_on(ir::Graph& graph, ir::Device device) {
  for (const ValueId input : graph.inputs()) place(graph, input, device);
  for (const NodeId n : graph.nodes()) {
    if (is_constant(graph.node(n))) continue;
    ir::Node& node = graph.mutable_node(n);
    for (const ValueId result : node.results) place(graph, result, device);
    if (const ops::Op* op = ops::find_op(node.op); op && (op->traits.creates || op->traits.copies)) say_device(node, device);
    for (const RegionId region : node.regions) place_on(graph.mutable_region(region), device);
  }
}

std::optional<ir::Graph> on_device(const ir::Graph& graph, ir::Device device) {
  for (std::size_t t = 0; t < graph.types().size(); ++t)
    if (!graph.types()[TypeId(t)].device.is_host()) return std::nullopt;
  if (has_constants_in_regions(graph)) return std::nullopt;
  ir::Graph moved = graph.clone();
  place_on(moved, device);
  copy_constants(moved, device);
  return moved;
}

}  // namespace tenon::rewrite
