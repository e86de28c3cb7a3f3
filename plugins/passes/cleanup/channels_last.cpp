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

bool is_gradient(const ir::Node& node) { return node.op == "conv_weight_sum" || node.op == "conv_input_sum"; }

bool is_convolution(const ir::Node& node) { return node.op == "convolution" || node.op == "conv_sum"; }

std::vector<NodeId> convolutions_of(const ir::Graph& graph) {
  std::vector<NodeId> found;
  for (const NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if ((is_convolution(node) || is_gradient(node)) && is_on_device(graph, node)) found.push_back(id);
  }
  return found;
}

ValueId weight_of(const ir::Node& node) { return node.op == "conv_weight_sum" ? node.results[0] : node.operands[node.op == "conv_input_sum" ? 0 : 1]; }

/// The operands and results of a convolution or of a gradient of it that are pictures.
std::vector<ValueId> pictures_of(const ir::Node& node) {
  std::vector<ValueId> all{node.operands[0], node.operands[1], node.results[0]};
  std::erase(all, weight_of(node));
  return all;
}

/// Whether it is a convolution of planes, with as much padding on either side, whose weight's sizes are known.
bool has_plain_form(const ir::Graph& graph, const ir::Node& node) {
  const ir::Type& weight = graph.type(weight_of(node));
  const auto *transposed = node.attribute("transposed"), *before = node.attribute("before"), *after = node.attribute("after");
  if (transposed && *transposed != ir::Attribute(false)) return false;
  if (after && (*before != *after || std::ranges::any_of(std::get<std::vector<Dim>>(*before), [](const Dim& d) { return d.constant() < 0; }))) return false;
  return weight.rank() == 4 && is_half_or_single(weight.dtype) && std::ranges::all_of(weight.shape, [](const Dim& d) { return d.is_constant(); });
}

/// Whether it is a forward graph that keeps values for its backward graph, or that one: what they share lies as it says.
bool is_half_of_a_step(const ir::Graph& graph) {
  const auto counted = [&](bool (*is_one)(const ir::Node&)) { return std::ranges::count_if(graph.nodes(), [&](NodeId id) { return is_one(graph.node(id)); }); };
  const bool keeps = std::ranges::any_of(graph.outputs(), [](const ir::Output& output) { return output.kind == ir::OutputKind::saved; });
  return keeps || counted(is_gradient) > 2 * counted(is_convolution);
}

/// The rules of torch.compile, found by measuring networks on cards (`decide_layout_opt` in torch/_inductor/graph.py of torch 2.11); the one of many channels
/// that become few is of its library alone, which has those of half precision.
bool gains(const ir::Graph& graph, const std::vector<NodeId>& convolutions) {
  constexpr std::int64_t kFewChannels = 64;
  bool many_channels = false;
  for (const NodeId id : convolutions) {
    const ir::Node& node = graph.node(id);
    if (!has_plain_form(graph, node)) return false;
    const ir::Shape& weight = graph.type(weight_of(node)).shape;
    const std::int64_t out = weight[0].constant(), in = weight[1].constant();
    const auto* groups = node.attribute("groups");
    if (groups && *groups != ir::Attribute(Dim(1)) && in > 1) return false;
    if (out * 2 <= in && weight[2].constant() > 1 && graph.type(weight_of(node)).dtype != DType::f32) return false;
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
    for (std::size_t i = 0; i < 2; ++i) operands[i] = last_of(node.operands[i], id);  // picture and weight, or picture and gradient
    const std::string name = is_gradient(node) ? node.op.text() : "convolution";
    const ValueId last = b.one(name + "_channels_last", std::move(operands), attributes_of(node));
    if (node.op == "conv_weight_sum") graph_.replace_uses(node.results[0], back(b, last));
    else moved_[node.results[0]] = last;
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

  /// Of the op with its channels last: padding is the same on either side.
  static ir::Attributes attributes_of(const ir::Node& node) {
    ir::Attributes kept;
    for (ir::NamedAttribute attribute : node.attributes) {
      if (attribute.name == "transposed" || attribute.name == "output_padding" || attribute.name == "after") continue;
      if (attribute.name == "before" && !is_gradient(node)) attribute.name = "padding";
      kept.push_back(std::move(attribute));
    }
    std::ranges::sort(kept, {}, &ir::NamedAttribute::name);
    return kept;
  }

  static ValueId back(ops::NodeBuilder& b, ValueId last) { return b.one("permute", {last}, {{"dims", std::vector<Dim>{Dim(0), Dim(3), Dim(1), Dim(2)}}}); }

  ValueId last_of(ValueId v, NodeId reader) {
    if (const auto known = moved_.find(v); known != moved_.end()) return known->second;
    const ir::Value& value = graph_.value(v);
    const NodeId place = value.kind == ir::ValueKind::result ? next_.at(value.node) : reader;
    return moved_[v] = before(place).one("permute", {v}, {{"dims", std::vector<Dim>{Dim(0), Dim(2), Dim(3), Dim(1)}}});
  }

  bool is_maker(NodeId user, ValueId last) const { return graph_.value(last).node == user; }

  void read_last(NodeId user, ValueId v, ValueId last) {
    ops::NodeBuilder b = before(user);
    const ValueId read = back(b, last);
    std::ranges::replace(graph_.mutable_node(user).operands, v, read);
  }

  ir::Graph& graph_;
  std::map<NodeId, NodeId> next_;      // in the order of before
  std::map<ValueId, ValueId> moved_;   // what of it lies with its channels last
  std::vector<NodeId> replaced_;
};

}  // namespace

void channels_last(ir::Graph& graph, const PassContext&) {
  const std::vector<NodeId> convolutions = convolutions_of(graph);
  if (convolutions.empty() || is_half_of_a_step(graph) || !gains(graph, convolutions)) return;
  const std::vector<bool> is_output = ir::output_values(graph);
  const auto is_kept = [&](NodeId id) { return std::ranges::any_of(pictures_of(graph.node(id)), [&](ValueId v) { return is_output[v.value]; }); };
  if (std::ranges::any_of(convolutions, is_kept)) return;
  Moving moving(graph);
  for (const NodeId id : convolutions) moving.replace(id);
  moving.finish();
}

}  // namespace tenon::cleanup
