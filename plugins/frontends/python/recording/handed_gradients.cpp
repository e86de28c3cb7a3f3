#include "python/recording/handed_gradients.h"

#include <algorithm>

#include "core/ops/view.h"
#include "core/rewrite/differentiate.h"
#include "python/metadata/view_layout.h"

namespace tenon::python {

HandedGradients::HandedGradients(const ir::Graph& graph, std::span<const ir::ValueId> ends, std::span<const ir::ValueId> wanted) : graph_(graph), ends_(ends.begin(), ends.end()) {
  const std::vector<ir::NodeId> way = rewrite::nodes_between(graph, ends, wanted);
  std::unordered_set<ir::ValueId> on_way(wanted.begin(), wanted.end());
  for (ir::NodeId id : way) on_way.insert(graph.node(id).results.begin(), graph.node(id).results.end());
  std::unordered_map<ir::ValueId, std::size_t> reads;
  for (ir::NodeId id : way) {
    const ir::Node& node = graph.node(id);
    const bool several = std::ranges::count_if(node.operands, [&](ir::ValueId operand) { return on_way.contains(operand); }) > 1;
    for (ir::ValueId operand : node.operands) {
      reads[operand] += node.results.size();
      next_.insert_or_assign(operand, Next{node.results.front(), several});
    }
  }
  for (const auto& [value, count] : reads)
    if (count > 1) next_.erase(value);
  std::unordered_set<ir::ValueId> seen;
  for (ir::ValueId value : wanted)
    for (auto next = next_.find(value); next != next_.end() && seen.insert(next->second.result).second; next = next_.find(next->second.result))
      asked_.push_back(next->second.result);
}

void HandedGradients::take(std::span<const std::optional<ir::ValueId>> gradients) {
  for (std::size_t i = 0; i < asked_.size(); ++i)
    if (gradients[i]) gradients_.insert_or_assign(asked_[i], *gradients[i]);
}

bool HandedGradients::shows(ir::ValueId view, ir::ValueId of) const {
  while (view != of) {
    const ir::Value& value = graph_.value(view);
    if (value.kind != ir::ValueKind::result || graph_.node(value.node).operands.size() != 1 || !ops::is_view(graph_, value.node)) return false;
    view = graph_.node(value.node).operands.front();
  }
  return true;
}

std::vector<std::size_t> HandedGradients::spread_of(ir::ValueId source, ir::ValueId gradient) const {
  std::vector<std::size_t> spread;
  const auto layout = source == gradient ? std::nullopt : layout_of_view(graph_, source, ir::row_major_strides(graph_.type(source).shape), gradient);
  if (!layout) return spread;
  for (std::size_t d = 0; d < layout->strides.size(); ++d)
    if (layout->strides[d] == ir::Dim(0) && !(graph_.type(gradient).shape[d] == ir::Dim(1))) spread.push_back(d);
  return spread;
}

std::optional<HandedGradients::Source> HandedGradients::source_of(ir::ValueId value, ir::ValueId gradient) const {
  Source source{gradient, ends_.contains(value), {}};
  bool handed = source.shared;
  while (!ends_.contains(value)) {
    const auto next = next_.find(value);
    const auto its = next == next_.end() ? gradients_.end() : gradients_.find(next->second.result);
    if (its == gradients_.end() || !shows(source.gradient, its->second)) break;
    handed = true;
    source.shared |= next->second.of_several;
    source.gradient = its->second;
    value = next->second.result;
  }
  if (!handed) return std::nullopt;
  source.spread = spread_of(source.gradient, gradient);
  return source;
}

}  // namespace tenon::python
