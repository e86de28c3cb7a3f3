#include "core/rewrite/kept_layouts.h"

#include <algorithm>
#include <vector>

#include "core/ops/catalog.h"
#include "core/ops/loop_body.h"
#include "core/ops/view.h"

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
  std::vector<bool> found(graph.value_capacity(), false), seen(graph.node_capacity(), false);
  std::vector<ValueId> pending;
  std::size_t rank = 0;
  const auto reach = [&](ValueId v) {
    if (graph.value(v).kind == ir::ValueKind::literal || !graph.type(v).is_tensor() || graph.type(v).rank() != rank || found[v.value]) return;
    found[v.value] = true;
    pending.push_back(v);
  };
  for (NodeId id : graph.nodes()) {
    if (!is_convolution(graph.node(id))) continue;
    const Dim channels = graph.type(graph.node(id).operands[1]).shape[1];
    if (channels == Dim(1)) return std::vector<bool>(graph.value_capacity(), false);
    if (!channels.is_constant() || channels.constant() < kManyChannels) continue;
    rank = graph.type(graph.node(id).results[0]).rank();
    reach(graph.node(id).operands[0]), reach(graph.node(id).results[0]);
  }
  const auto users = graph.users();
  const auto pass = [&](NodeId id) {
    if (seen[id.value] || is_convolution(graph.node(id)) || !keeps_places(graph, id)) return;
    seen[id.value] = true;
    std::ranges::for_each(graph.node(id).operands, reach);
    std::ranges::for_each(graph.node(id).results, reach);
  };
  while (!pending.empty()) {
    const ValueId value = pending.back();
    pending.pop_back();
    std::ranges::for_each(users[value.value], pass);
    if (graph.value(value).kind == ir::ValueKind::result) pass(graph.value(value).node);
  }
  return found;
}

}  // namespace

void lay_out_kept(ir::Graph& graph, std::span<const ValueId> kept) {
  const std::vector<bool> around = around_convolutions(graph);
  for (ValueId v : kept) {
    const ir::Type type = graph.type(v);
    if (!around[v.value] || type.strides || graph.value(v).kind != ir::ValueKind::result) continue;
    ir::Shape strides(type.rank());
    Dim stride = type.shape[1];
    strides[1] = Dim(1);
    for (std::size_t d = type.rank(); d-- > 2;) strides[d] = stride, stride = stride * type.shape[d];
    strides[0] = stride;
    graph.set_strides(v, strides);
  }
}

}  // namespace tenon::rewrite
