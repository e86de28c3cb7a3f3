#include "products/laid_products.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "core/ir/outputs.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/view.h"
#include "core/rewrite/reached_values.h"
#include "products/moved_channels.h"

namespace tenon::cuda {

using ir::Dim;
using ir::NodeId;
using ir::ValueId;

namespace {

using Dims = std::vector<Dim>;

/// Whether the channels of what lies behind the value are last.
bool is_moved_back(const ir::Graph& graph, ValueId value) {
  const ir::Value& v = graph.value(value);
  return v.kind == ir::ValueKind::result && moves_channels(graph, graph.node(v.node), kChannelsBack);
}

void lay_weight(ir::Graph& graph, NodeId id) {
  const ValueId weight = graph.node(id).operands[1];
  if (is_moved_back(graph, weight)) return;
  ops::NodeBuilder build(graph, id);
  const ValueId laid = moved_and_back(build, weight);
  graph.mutable_node(id).operands[1] = laid;
}

/// Channels that a thread reads at once, and how few are padded to that.
constexpr std::int64_t kAtOnce = 4, kFewChannels = 16;

/// Convolutions over few channels of float32, and gradients of their weights, as those over so many that they are read in whole vectors.
class Padding {
 public:
  explicit Padding(ir::Graph& graph) : graph_(graph) {}

  void pad(NodeId id) {
    const ir::Node node = graph_.node(id);
    const Dim &channels = graph_.type(node.operands[0]).shape[1], *groups = std::get_if<Dim>(node.attribute("groups"));
    if (graph_.type(node.results[0]).dtype != DType::f32 || !channels.is_constant() || (groups && !(*groups == Dim(1)))) return;
    if (channels.constant() % kAtOnce == 0 || channels.constant() > kFewChannels) return;
    const Dim missing(kAtOnce - channels.constant() % kAtOnce);
    ops::NodeBuilder build(graph_, id);
    const ValueId picture = padded_picture(build, node.operands[0], missing);
    const bool is_gradient = node.op == "conv_weight_sum";
    const ValueId other = is_gradient ? node.operands[1] : padded(build, node.operands[1], {Dim(0), missing, Dim(0), Dim(0)});
    const ValueId made = build.one(node.op, {picture, other}, node.attributes);
    graph_.replace_uses(node.results[0], is_gradient ? build.one("slice", {moved_and_back(build, made)}, {{"dim", Dim(1)}, {"end", channels}, {"start", Dim(0)}, {"step", Dim(1)}}) : made);
    graph_.erase_nodes(std::vector{id});
  }

 private:
  static ValueId padded(ops::NodeBuilder& build, ValueId value, Dims after) {
    return build.one("pad", {value}, {{"after", std::move(after)}, {"before", Dims(4, Dim(0))}, {"mode", std::string("constant")}, {"value", 0.0}});
  }

  ValueId padded_picture(ops::NodeBuilder& build, ValueId picture, const Dim& missing) {
    const ValueId last = graph_.node(graph_.value(picture).node).operands[0];
    const auto [known, fresh] = pictures_.try_emplace(last);
    if (fresh) known->second = build.one("permute", {padded(build, last, {Dim(0), Dim(0), Dim(0), missing})}, {{"dims", kChannelsBack}});
    return known->second;
  }

  ir::Graph& graph_;
  std::map<ValueId, ValueId> pictures_;  // by what was padded
};

bool is_laid(const ir::Graph& graph, const ir::Node& node) {
  return (node.op == "conv_sum" || node.op == "conv_weight_sum") && graph.type(node.results[0]).rank() == 4 && is_moved_back(graph, node.operands[0]);
}

/// What is computed point by point of pictures whose channels are last, and for them.
std::vector<bool> computed_in_place(const ir::Graph& graph) {
  const auto is_picture = [&](ValueId v) { return graph.value(v).kind != ir::ValueKind::literal && graph.type(v).rank() == 4; };
  std::vector<ValueId> pictures;
  for (const NodeId id : graph.nodes())
    if (moves_channels(graph, graph.node(id), kChannelsBack)) pictures.push_back(graph.node(id).results[0]);
  const auto in_place = [&](NodeId id) {
    std::vector<ValueId> values;
    const auto body = ops::loop_of(graph, id);
    if (!body || body->reducer || ops::is_view(graph, id)) return values;
    values = graph.node(id).operands;
    values.insert(values.end(), graph.node(id).results.begin(), graph.node(id).results.end());
    return values;
  };
  return rewrite::reached_values(graph, pictures, in_place, is_picture);
}

/// What is kept of them lies as they do: sums over places would read one side in rows, and the other one across.
void lay_between(ir::Graph& graph) {
  const std::vector<bool> reached = computed_in_place(graph), given = ir::output_values(graph);
  for (const NodeId id : graph.nodes()) {
    if (ops::is_view(graph, id)) continue;
    for (const ValueId v : graph.node(id).results)
      if (reached[v.value] && !given[v.value] && !graph.type(v).strides) graph.set_strides(v, ir::channels_last_strides(graph.type(v).shape));
  }
}

}  // namespace

void lay_products(ir::Graph& graph) {
  Padding padding(graph);
  for (const NodeId id : std::vector(graph.nodes().begin(), graph.nodes().end()))
    if (is_laid(graph, graph.node(id))) padding.pad(id);
  const auto users = graph.users();
  for (const NodeId id : std::vector(graph.nodes().begin(), graph.nodes().end())) {
    const ir::Node& node = graph.node(id);
    if (!is_laid(graph, node) || node.op != "conv_sum") continue;
    const auto& readers = users[node.results[0].value];
    const auto moves = [&](NodeId user) { return moves_channels(graph, graph.node(user), kChannelsToEnd); };
    if (!readers.empty() && std::ranges::none_of(readers, moves)) lay_channels_last(graph, graph.node(id).results[0], readers.front());
    lay_weight(graph, id);
  }
  const auto trains = [&](NodeId id) { return graph.node(id).op == "conv_weight_sum" && is_laid(graph, graph.node(id)); };
  if (std::ranges::any_of(graph.nodes(), trains)) lay_between(graph);
}

}  // namespace tenon::cuda
