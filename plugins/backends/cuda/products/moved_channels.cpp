#include "products/moved_channels.h"

namespace tenon::cuda {

bool moves_channels(const ir::Graph& graph, const ir::Node& node, const std::vector<ir::Dim>& dims) {
  return node.op == "permute" && graph.type(node.results[0]).rank() == 4 && std::get<std::vector<ir::Dim>>(*node.attribute("dims")) == dims;
}

ir::ValueId moved_and_back(ops::NodeBuilder& build, ir::ValueId value) {
  return build.one("permute", {build.one("permute", {value}, {{"dims", kChannelsToEnd}})}, {{"dims", kChannelsBack}});
}

void lay_channels_last(ir::Graph& graph, ir::ValueId value, ir::NodeId first_reader) {
  ops::NodeBuilder build(graph, first_reader);
  const ir::ValueId laid = moved_and_back(build, value);
  const ir::NodeId moves = graph.value(graph.node(graph.value(laid).node).operands[0]).node;
  graph.replace_uses(value, laid);
  graph.mutable_node(moves).operands[0] = value;
}

}  // namespace tenon::cuda
