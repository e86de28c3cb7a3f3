#include "host/partition/detour.h"

#include <algorithm>
#include <map>

#include "core/ops/catalog.h"

namespace tenon::host {
namespace {

ir::Attributes to(ir::Device device) { return {{"device", ir::device_text(device)}}; }

bool is_elsewhere(const ir::Graph& graph, ValueId v) { return graph.value(v).kind != ir::ValueKind::literal && !graph.type(v).device.is_host(); }

ir::Type in_host(ir::Type type) {
  type.device = {};
  type.strides.reset();
  return type;
}

}  // namespace

bool may_run_on_host(const ir::Graph& graph, const ir::Node& node) {
  const ops::Op* op = ops::find_op(node.op);
  if (!op || op->traits.random || op->traits.opaque || op->traits.control || op->traits.copies || !node.regions.empty()) return false;
  const auto is_tensor = [&](ValueId v) { return graph.type(v).is_tensor(); };
  return std::ranges::all_of(node.operands, is_tensor) && std::ranges::all_of(node.results, is_tensor);
}

void bring_to_host(ir::Graph& graph, NodeId id) {
  std::map<ValueId, ValueId> copies;
  std::vector<ValueId> operands = graph.node(id).operands;
  const ir::SharedLocation location = graph.node(id).location;
  for (ValueId& v : operands) {
    if (!is_elsewhere(graph, v)) continue;
    const auto [copy, fresh] = copies.try_emplace(v);
    if (fresh) copy->second = graph.node(graph.add_node("to_device", {v}, to({}), {in_host(graph.type(v))}, location, {}, id)).results[0];
    v = copy->second;
  }
  graph.mutable_node(id).operands = std::move(operands);
  for (ir::NamedAttribute& attribute : graph.mutable_node(id).attributes)
    if (std::string_view(attribute.name) == "device") attribute.value = ir::device_text({});
  const auto place = std::ranges::find(graph.nodes(), id);
  const std::optional<NodeId> next = place + 1 == graph.nodes().end() ? std::nullopt : std::optional(*(place + 1));
  for (const ValueId result : std::vector<ValueId>(graph.node(id).results)) {
    const ir::Type type = graph.type(result);
    if (type.device.is_host()) continue;
    graph.set_type(result, in_host(type));
    const NodeId back = graph.add_node("to_device", {}, to(type.device), {type}, location, {}, next);
    graph.replace_uses(result, graph.node(back).results[0]);
    graph.mutable_node(back).operands = {result};
  }
}

}  // namespace tenon::host
