#include "core/ops/portable.h"

#include <fmt/format.h>

#include "core/ops/catalog.h"

namespace tenon::ops {
namespace {

std::string describe_foreign(const ir::Node& node, const Op* op) {
  std::string text = op ? fmt::format("{} runs code of another library", node.op) : fmt::format("the catalogue has no op {}", node.op);
  for (const ir::NamedAttribute& attribute : node.attributes)
    if (const auto* value = std::get_if<std::string>(&attribute.value); op && value) text += fmt::format(" ({} {})", attribute.name, *value);
  if (node.location->line)
    text += fmt::format("\n  File \"{}\", line {}, in {}\n    {}", node.location->file, node.location->line, node.location->function, node.location->code);
  return text;
}

}  // namespace

std::string why_not_portable(const ir::Graph& graph) {
  for (ir::NodeId n : graph.nodes()) {
    const ir::Node& node = graph.node(n);
    for (ir::RegionId region : node.regions)
      if (std::string inside = why_not_portable(graph.region(region)); !inside.empty()) return inside;
    const Op* op = find_op(node.op);
    if (op ? op->traits.opaque : node.regions.empty()) return describe_foreign(node, op);
  }
  return {};
}

std::string why_not_read(const ir::Graph& graph) {
  for (ir::NodeId n : graph.nodes()) {
    const ir::Node& node = graph.node(n);
    for (ir::RegionId region : node.regions)
      if (std::string inside = why_not_read(graph.region(region)); !inside.empty()) return inside;
    if (const Op* op = find_op(node.op); op && op->traits.opaque) return describe_foreign(node, op) + ", which only the process that recorded the call has";
  }
  return {};
}

}  // namespace tenon::ops
