#include "python/recording/graph/recorded_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/rewrite/rewriter.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"

namespace tenon::python {

bool RecordedGraph::any_may_raise() const {
  const auto nodes = graph.nodes();
  return std::any_of(nodes.rbegin(), nodes.rend(), [&](ir::NodeId id) { return rewrite::may_raise(graph.node(id)); });
}

RecordedGraph::Index RecordedGraph::add_fresh(TensorKind kind, ir::ValueId value, const TensorSpec& spec) {
  StandIn stand_in = stand_in_of(spec, value);
  stand_in.kind = kind;
  stand_in.device = graph.type(value).device;
  stand_in.writeable = spec.writeable;
  return stand_ins.add_owner(std::move(stand_in));
}

ir::Device RecordedGraph::device_of(std::span<const Index> operands) const {
  const auto on_device = [&](Index index) { return !stand_ins[index].device.is_host(); };
  const auto has_dimensions = [&](Index index) { return !stand_ins[index].shape.empty(); };
  auto found = std::ranges::find_if(operands, [&](Index index) { return has_dimensions(index) && on_device(index); });
  if (found == operands.end() && std::ranges::none_of(operands, has_dimensions)) found = std::ranges::find_if(operands, on_device);
  return found == operands.end() ? ir::Device() : stand_ins[*found].device;
}

bool RecordedGraph::is_late(ir::ValueId value) const {
  return symbols.any_data() && !std::ranges::all_of(graph.type(value).shape, [&](const ir::Dim& d) { return symbols.is_known(d); });
}

void RecordedGraph::settle_extents(std::span<const ir::ValueId> values) {
  for (ir::ValueId value : values)
    for (const ir::Dim& dim : graph.type(value).shape) symbols.settle_extent(dim);
}

void RecordedGraph::fix_sizes_to_come(Index index) {
  for (const ir::Dim& dim : graph.type(stand_ins[index].value).shape) symbols.constant(dim);
}

ir::ValueId RecordedGraph::condition(PyObject* predicate) {
  const Index index = stand_ins.require(predicate);
  const StandIn& s = stand_ins[index];
  std::int64_t count = 1;
  for (std::int64_t extent : s.shape) count *= extent;
  if (count != 1) throw GraphBreak(fmt::format("the condition of tenon.cond has {} elements", count), "give one that has one element");
  ir::ValueId value = present.of(index);
  if (!s.shape.empty()) value = builder.one("reshape", {value}, {{"shape", ir::Shape{}}});
  return is_bool(s.dtype) ? value : builder.one("ne", {value, builder.literal(ir::Dim(0))});
}

bool is_tensor(PyObject* object) {
  const TorchLibrary* torch = known_torch_library();
  return PyArray_Check(object) || (torch && torch->is_tensor(object));
}

}  // namespace tenon::python
