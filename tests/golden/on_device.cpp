#include "on_device.h"

#include <algorithm>

#include "core/ops/catalog.h"

namespace tenon::golden {
namespace {

void move(ir::Graph& graph, ir::Device device) {
  for (std::size_t v = 0; v < graph.value_capacity(); ++v) {
    ir::Type type = graph.type(ValueId(v));
    if (!type.is_tensor() || graph.value(ValueId(v)).kind == ir::ValueKind::literal) continue;
    type.device = device;
    graph.set_type(ValueId(v), type);
  }
  for (NodeId n : graph.nodes()) {
    ir::Node& node = graph.mutable_node(n);
    const ops::Op* op = ops::find_op(node.op);
    if (!op || !op->traits.creates) continue;
    node.attributes.push_back({"device", ir::device_text(device)});
    std::ranges::sort(node.attributes, {}, &ir::NamedAttribute::name);
  }
  for (std::size_t r = 0; r < graph.region_capacity(); ++r) move(graph.mutable_region(RegionId(r)), device);
}

}  // namespace

std::optional<ir::Graph> on_device(const ir::Graph& graph, ir::Device device) {
  for (std::size_t t = 0; t < graph.types().size(); ++t)
    if (!graph.types()[TypeId(t)].device.is_host()) return std::nullopt;
  if (!graph.constants().empty()) return std::nullopt;
  ir::Graph moved = graph.clone();
  move(moved, device);
  return moved;
}

}  // namespace tenon::golden
