#include "core/rewrite/kept_layouts.h"

#include <vector>

#include "core/ops/catalog.h"
#include "core/ops/loop_body.h"
#include "core/ops/view.h"
#include "core/rewrite/reached_values.h"

namespace tenon::rewrite {
namespace {

using ir::Dim;
using ir::NodeId;
using ir::ValueId;

/// Channels from which a convolution multiplies them where they lie.
constexpr std::int64_t kManyChannels = 16;

bool is_convolution(const ir::Node& node) { return node.op == "conv_sum"; }

/// True when elements become elements of the result of the same rank where they are, or windows of one operand do.
bool keeps_places(const ir::Graph& graph, NodeId id) {
  const auto body = ops::loop_of(graph, id);
  return body && !ops::is_view(graph, id) && (!body->reducer || graph.node(id).operands.size() == 1);
}

/// By value: whether it is read or given by a convolution over many channels, or computed from one or for one in place. None where some convolution
/// is over single channels, which are better together with their pixels.
std::vector<bool> around_convolutions(const ir::Graph& graph) {
  std::vector<ValueId> pictures;
  std::size_t rank = 0;
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (!is_convolution(node)) continue;
    const Dim channels = graph.type(node.operands[1]).shape[1];
    if (channels == Dim(1)) return std::vector<bool>(graph.value_capacity(), false);
    if (!channels.is_constant() || channels.constant() < kManyChannels) continue;
    rank = graph.type(node.results[0]).rank();
    pictures.insert(pictures.end(), {node.operands[0], node.results[0]});
  }
  const auto in_place = [&](NodeId id) {
    std::vector<ValueId> values;
    if (is_convolution(graph.node(id)) || !keeps_places(graph, id)) return values;
    values = graph.node(id).operands;
    values.insert(values.end(), graph.node(id).results.begin(), graph.node(id).results.end());
    return values;
  };
  return reached_values(graph, pictures, in_place, [&](ValueId v) {
    return graph.value(v).kind != ir::ValueKind::literal && graph.type(v).is_tensor() && graph.type(v).rank() == rank;
  });
}

}  // namespace

void lay_out_kept(ir::Graph& graph, std::span<const ValueId> kept) {
  const std::vector<bool> around = around_convolutions(graph);
  for (ValueId v : kept) {
    const ir::Type type = graph.type(v);
    if (!around[v.value] || type.strides || graph.value(v).kind != ir::ValueKind::result) continue;
    graph.set_strides(v, ir::channels_last_strides(type.shape));
  }
}

}  // namespace tenon::rewrite
