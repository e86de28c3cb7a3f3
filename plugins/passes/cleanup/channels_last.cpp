#include "channels_last.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/ir/outputs.h"
#include "core/ops/build/node_builder.h"

namespace tenon::cleanup {
namespace {

using ir::Dim;

bool is_on_device(const ir::Graph& graph, const ir::Node& node) { return !graph.type(node.results[0]).device.is_host(); }

bool is_half_or_single(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

std::vector<NodeId> convolutions_of(const ir::Graph& graph) {
  std::vector<NodeId> found;
  for (const NodeId id : graph.nodes())
    if (graph.node(id).op == "convolution" && is_on_device(graph, graph.node(id))) found.push_back(id);
  return found;
}

/// Whether it is a convolution of planes whose weight's sizes are known.
bool has_plain_form(const ir::Graph& graph, const ir::Node& node) {
  const ir::Type& weight = graph.type(node.operands[1]);
  const auto* transposed = node.attribute("transposed");
  if (transposed && *transposed != ir::Attribute(false)) return false;
  return weight.rank() == 4 && is_half_or_single(weight.dtype) && std::ranges::all_of(weight.shape, [](const Dim& d) { return d.is_constant(); });
}

/// Whether a forward graph keeps values for its backward graph, or is one.
bool trains(const ir::Graph& graph) {
  const auto is_gradient = [&](NodeId id) { return graph.node(id).op == "conv_weight_sum" || graph.node(id).op == "conv_input_sum"; };
  return std::ranges::any_of(graph.outputs(), [](const ir::Output& output) { return output.kind == ir::OutputKind::saved; }) || std::ranges::any_of(graph.nodes(), is_gradient);
}

/// The rules of torch.compile, found by measuring networks on cards (`decide_layout_opt` in torch/_inductor/graph.py of torch 2.11).
bool gains(const ir::Graph& graph, const std::vector<NodeId>& convolutions) {
  constexpr std::int64_t kFewChannels = 64;
  bool many_channels = false;
  for (const NodeId id : convolutions) {
    const ir::Node& node = graph.node(id);
    if (!has_plain_form(graph, node)) return false;
    const ir::Shape& weight = graph.type(node.operands[1]).shape;
    const std::int64_t out = weight[0].constant(), in = weight[1].constant();
    const auto* groups = node.attribute("groups");
    if (groups && *groups != ir::Attribute(Dim(1)) && in > 1) return false;
    if (out * 2 <= in && weight[2].constant() > 1) return false;
    many_channels = many_channels || out > kFewChannels || in > kFewChannels;
  }
  return many_channels;
}

/// Moves the channels of values, and finds those whose channels have been moved.
class Moving {
 public:
  explicit Moving(ir::Graph& graph) : graph_(graph) {
    const auto nodes = graph.nodes();
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i) next_[nodes[i]] = nodes[i + 1];
  }

  void replace(NodeId id) {
    const ir::Node node = graph_.node(id);
    ops::NodeBuilder b = before(id);
    std::vector<ValueId> operands = node.operands;
    for (std::size_t i = 0; i < 2; ++i) operands[i] = last_of(node.operands[i], id);  // picture and weight
    ir::Attributes attributes;
    for (const ir::NamedAttribute& attribute : node.attributes)
      if (attribute.name != "transposed" && attribute.name != "output_padding") attributes.push_back(attribute);
    moved_[node.results[0]] = b.one("convolution_channels_last", std::move(operands), std::move(attributes));
    replaced_.push_back(id);
  }

  /// Lets each reader of a value with a moved form read that: it lies there anyway.
  void finish() {
    const auto users = graph_.users();
    for (const auto& [v, last] : moved_) {
      if (graph_.value(v).kind != ir::ValueKind::result) continue;
      for (const NodeId user : users[v.value])
        if (!is_maker(user, last) && !std::ranges::count(replaced_, user)) read_last(user, v, last);
    }
    graph_.erase_nodes(replaced_);
  }

 private:
  ops::NodeBuilder before(NodeId id) {
    ops::NodeBuilder b(graph_, id);
    b.at(graph_.node(id).location);
    return b;
  }

  ValueId last_of(ValueId v, NodeId reader) {
    if (const auto known = moved_.find(v); known != moved_.end()) return known->second;
    const ir::Value& value = graph_.value(v);
    const NodeId place = value.kind == ir::ValueKind::result ? next_.at(value.node) : reader;
    return moved_[v] = before(place).one("permute", {v}, {{"dims", std::vector<Dim>{Dim(0), Dim(2), Dim(3), Dim(1)}}});
  }

  bool is_maker(NodeId user, ValueId last) const { return graph_.value(last).node == user; }

  void read_last(NodeId user, ValueId v, ValueId last) {
    const ValueId back = before(user).one("permute", {last}, {{"dims", std::vector<Dim>{Dim(0), Dim(3), Dim(1), Dim(2)}}});
    std::ranges::replace(graph_.mutable_node(user).operands, v, back);
  }

  ir::Graph& graph_;
  std::map<NodeId, NodeId> next_;      // in the order of before
  std::map<ValueId, ValueId> moved_;   // what of it lies with its channels last
  std::vector<NodeId> replaced_;
};

}  // namespace

void channels_last(ir::Graph& graph, const PassContext&) {
  const std::vector<NodeId> convolutions = convolutions_of(graph);
  if (convolutions.empty() || trains(graph) || !gains(graph, convolutions)) return;
  const std::vector<bool> is_output = ir::output_values(graph);
  const auto is_kept = [&](NodeId id) { return is_output[graph.node(id).operands[0].value] || is_output[graph.node(id).results[0].value]; };
  if (std::ranges::any_of(convolutions, is_kept)) return;
  Moving moving(graph);
  for (const NodeId id : convolutions) moving.replace(id);
  moving.finish();
}

}  // namespace tenon::cleanup
