#include "core/rewrite/backward.h"

#include <algorithm>

#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/gradients/gradient.h"

namespace tenon::rewrite {
namespace {

bool must_be_expanded(const ir::Node& node) {
  const ops::Op* op = ops::find_op(node.op);
  return op && op->decompose && !op->grad && !op->body && op->no_grad_reason.empty();
}

void expand_composites(ir::Graph& graph) {
  for (bool again = true; again;) {
    again = false;
    const std::vector<ir::NodeId> nodes(graph.nodes().begin(), graph.nodes().end());
    for (ir::NodeId id : nodes)
      if (must_be_expanded(graph.node(id))) again = ops::expand_node(graph, id) || again;
  }
}

/// What is known of the gradients while nodes are visited from the last to the first.
class Backward {
 public:
  explicit Backward(ir::Graph& graph) : graph_(graph), builder_(graph), adjoints_(graph.value_capacity()) {}

  void seed() {
    const std::vector<ir::Output> outputs(graph_.outputs().begin(), graph_.outputs().end());
    for (const ir::Output& output : outputs) {
      const ir::Type type = graph_.type(output.value);
      if (is_float(type.dtype)) give(output.value, graph_.add_input(ir::Type::tensor(type.dtype, type.shape, type.device)));
    }
  }

  void visit(ir::NodeId id) {
    const ir::Node node = graph_.node(id);
    std::vector<std::optional<ir::ValueId>> given;
    for (ir::ValueId result : node.results) given.push_back(adjoints_[result.value]);
    const auto is_differentiable = [&](ir::ValueId v) { return graph_.value(v).kind != ir::ValueKind::literal && is_float(graph_.type(v).dtype); };
    if (std::ranges::none_of(given, [](const auto& g) { return g.has_value(); }) || std::ranges::none_of(node.operands, is_differentiable)) return;
    const auto handed = ops::node_gradients(builder_, id, given);
    for (std::size_t k = 0; k < handed.size(); ++k)
      if (handed[k]) give(node.operands[k], *handed[k]);
  }

  ir::ValueId gradient_of(ir::ValueId input) {
    if (adjoints_[input.value]) return *adjoints_[input.value];
    const ir::Type type = graph_.type(input);
    builder_.on(type.device);
    return builder_.one("full", {builder_.literal(0.0)}, {{"dtype", type.dtype}, {"size", type.shape}});
  }

 private:
  void give(ir::ValueId value, ir::ValueId adjoint) {
    std::optional<ir::ValueId>& sum = adjoints_[value.value];
    sum = sum ? builder_.one("add", {*sum, adjoint}) : adjoint;
  }

  ir::Graph& graph_;
  ops::NodeBuilder builder_;
  std::vector<std::optional<ir::ValueId>> adjoints_;  // of the values of the graph as it was
};

}  // namespace

ir::Graph backward_graph(const ir::Graph& graph) {
  ir::Graph result = graph.clone();
  expand_composites(result);
  const std::vector<ir::NodeId> forward(result.nodes().begin(), result.nodes().end());
  const std::vector<ir::ValueId> inputs(result.inputs().begin(), result.inputs().end());
  Backward backward(result);
  backward.seed();
  for (std::size_t i = forward.size(); i-- > 0;) backward.visit(forward[i]);
  std::vector<ir::Output> outputs;
  for (ir::ValueId input : inputs)
    if (is_float(result.type(input).dtype)) outputs.push_back({.value = backward.gradient_of(input)});
  result.set_outputs(std::move(outputs));
  return result;
}

}  // namespace tenon::rewrite
