#include "python/graph/spread_gradients.h"

#include <algorithm>

#include "core/ops/view.h"
#include "python/metadata/view_layout.h"

namespace tenon::python {
namespace {

ir::ValueId behind_views(const ir::Graph& graph, ir::ValueId value) {
  for (;;) {
    const ir::Value& at = graph.value(value);
    if (at.kind != ir::ValueKind::result || graph.node(at.node).operands.size() != 1 || !ops::is_view(graph, at.node)) return value;
    value = graph.node(at.node).operands.front();
  }
}

}  // namespace

bool is_only_summed(const ir::Graph& forward, ir::ValueId value) {
  const auto users = forward.users();
  for (;;) {
    const std::vector<ir::NodeId>& readers = users[value.value];
    const auto is_value = [&](const ir::Output& output) { return output.value == value; };
    if (readers.size() != 1 || std::ranges::any_of(forward.outputs(), is_value)) return false;
    const ir::Node& node = forward.node(readers.front());
    if (node.op == "sum") return forward.type(node.results.front()).dtype == forward.type(value).dtype;
    if (node.operands.size() != 1 || !ops::is_view(forward, readers.front())) return false;
    value = node.results.front();
  }
}

std::vector<std::size_t> spread_of(const ir::Graph& graph, ir::ValueId gradient, std::span<const ir::ValueId> given, std::span<const TangentLayout> tangents,
                                   const std::function<bool()>& is_summed) {
  const ir::ValueId at = behind_views(graph, gradient);
  const auto found = std::ranges::find(given, at);
  const ir::Shape& shape = graph.type(gradient).shape;
  const bool fixed = std::ranges::all_of(shape, [](const ir::Dim& size) { return size.is_constant() && size.constant() > 0; });
  if (!fixed) return {};
  const bool one_element = found != given.end() && tangents[static_cast<std::size_t>(found - given.begin())] == TangentLayout::one_element;
  const auto layout = at == gradient ? std::nullopt : layout_of_view(graph, at, ir::row_major_strides(graph.type(at).shape), gradient);
  std::vector<std::size_t> spread;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (!(shape[d] == ir::Dim(1)) && (one_element || (layout && layout->strides[d] == ir::Dim(0)))) spread.push_back(d);
  return found != given.end() || (!spread.empty() && is_summed()) ? spread : std::vector<std::size_t>();
}

void show_once(TensorOutput& tensor, std::span<const std::size_t> spread) {
  if (spread.empty()) return;
  std::int64_t step = 1;
  for (std::size_t d = tensor.shape.size(); d-- > 0;) {
    const bool once = std::ranges::find(spread, d) != spread.end();
    tensor.strides[d] = once ? 0 : step;
    if (!once) step *= tensor.shape[d];
  }
}

}  // namespace tenon::python
