#include "fusion/layout.h"

#include <algorithm>
#include <set>

#include "core/ops/catalog.h"
#include "core/ops/loop_body.h"
#include "fusion/cost.h"

namespace tenon::codegen {
namespace {

using ir::Dim;

bool has_matrix_kernel(const ir::Type& type) { return type.is_tensor() && (type.dtype == DType::f32 || type.dtype == DType::f64); }

/// Multiplications of a convolution as far as they are known; a size that is not known counts as one.
double work_of(const ir::Graph& graph, const ir::Node& node) {
  double work = 1;
  auto count = [&](const Dim& d) { work *= d.is_constant() ? static_cast<double>(d.constant()) : 1; };
  for (const Dim& d : graph.type(node.results[0]).shape) count(d);
  const auto& weight = graph.type(node.operands[1]).shape;
  std::for_each(weight.begin() + 1, weight.end(), count);
  return work;
}

/// The rank of values around most of the work that runs over channels. 0 when other convolutions do more.
std::size_t rank_that_gains(const ir::Graph& graph) {
  double gain = 0, loss = 0;
  std::size_t rank = 0;
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.op != "conv_sum" || !has_matrix_kernel(graph.type(node.results[0]))) continue;
    const auto& weight = graph.type(node.operands[1]).shape;
    const auto& channels = weight[1];
    const bool runs = channels.is_constant() && static_cast<double>(channels.constant()) >= kShortestRun;
    const bool depthwise = channels == Dim(1);
    if (runs) gain += work_of(graph, node), rank = weight.size();
    else if (depthwise) loss += kDepthwiseLoss * work_of(graph, node);
  }
  return gain > loss ? rank : 0;
}

std::vector<Dim> channels_last(const ir::Shape& shape) {
  std::vector<Dim> strides(shape.size());
  Dim stride = shape[1];
  strides[1] = Dim(1);
  for (std::size_t d = shape.size(); d-- > 2;) strides[d] = stride, stride = stride * shape[d];
  strides[0] = stride;
  return strides;
}

}  // namespace

void choose_layouts(ir::Graph& graph) {
  const std::size_t rank = rank_that_gains(graph);
  if (rank == 0) return;
  std::set<ValueId> fixed;
  for (const ir::Output& output : graph.outputs()) fixed.insert(output.value);
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.op == "constant" && node.operands.empty()) continue;
    if (ops::loop_of(graph, id)) continue;
    fixed.insert(node.operands.begin(), node.operands.end());
    fixed.insert(node.results.begin(), node.results.end());
  }
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.op == "constant" && node.operands.empty()) continue;
    for (ValueId v : node.results) {
      const ir::Type& type = graph.type(v);
      if (!has_matrix_kernel(type) || type.rank() != rank || type.strides || fixed.contains(v)) continue;
      const auto strides = channels_last(type.shape);
      graph.mutable_value(v).type.strides = ir::Shape(strides.begin(), strides.end());
    }
  }
}

}  // namespace tenon::codegen
