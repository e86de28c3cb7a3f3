#include "core/rewrite/never_chosen.h"

namespace tenon::rewrite {

using ir::ValueId;

ValueId never_chosen(ops::NodeBuilder& builder, ValueId other, ValueId value) {
  builder.on(builder.graph().type(value).device);
  const ValueId never = builder.one("full", {builder.literal(false)}, {{"dtype", DType::b8}, {"size", ir::Shape{}}});
  return builder.one("where", {never, other, value});
}

void read_past_never_chosen(ir::Graph& graph) {
  const auto is_false = [&](ValueId v) {
    if (graph.value(v).kind != ir::ValueKind::result) return false;
    const ir::Node& node = graph.node(graph.value(v).node);
    if (node.op != "full" || graph.type(v).dtype != DType::b8 || graph.value(node.operands[0]).kind != ir::ValueKind::literal) return false;
    const bool* literal = std::get_if<bool>(&graph.value(node.operands[0]).literal);
    return literal && !*literal;
  };
  for (ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.op == "where" && is_false(node.operands[0]) && graph.type(node.operands[2]) == graph.type(node.results[0])) graph.replace_uses(node.results[0], node.operands[2]);
  }
}

}  // namespace tenon::rewrite
