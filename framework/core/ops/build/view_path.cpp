#include "core/ops/build/view_path.h"

#include <algorithm>

#include "core/ops/catalog.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::ValueId;

ir::Attributes chosen(const ir::Attributes& all, std::initializer_list<std::string_view> names) {
  ir::Attributes attributes;
  for (const ir::NamedAttribute& each : all)
    if (std::ranges::find(names, std::string_view(each.name)) != names.end()) attributes.push_back(each);
  return attributes;
}

ValueId reshaped(NodeBuilder& builder, ValueId value, ir::Shape shape) {
  if (builder.graph().type(value).shape == shape) return value;
  return builder.one("reshape", {value}, {{"shape", std::move(shape)}});
}

bool is_opaque(const ir::Graph& graph, ir::NodeId node) {
  const Op* op = find_op(graph.node(node).op);
  return !op || op->traits.opaque;
}

/// The dimensions of a permutation the other way round.
std::vector<Dim> inverse(const std::vector<Dim>& dims) {
  std::vector<Dim> back(dims.size());
  const auto rank = static_cast<std::int64_t>(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t dim = dims[i].constant();
    back[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)] = Dim(static_cast<std::int64_t>(i));
  }
  return back;
}

/// For a step of any kind: the places of the part's elements, found by taking the same step on the numbers of the elements.
ValueId scattered_by_place(NodeBuilder& builder, const ViewStep& step, ValueId viewed, ValueId part) {
  const ir::Type type = builder.graph().type(viewed);
  const ir::Shape flat{type.element_count()}, flat_part{builder.graph().type(part).element_count()};
  const ValueId numbers = builder.one("arange", {}, {{"dtype", DType::i64}, {"end", flat[0]}, {"start", Dim(0)}, {"step", Dim(1)}});
  const ValueId places = replayed(builder, step, reshaped(builder, numbers, type.shape));
  const ValueId written = builder.one("index_put", {reshaped(builder, viewed, flat), reshaped(builder, part, flat_part), reshaped(builder, places, flat_part)},
                                      {{"accumulate", false}, {"dims", std::vector<Dim>{Dim(0)}}});
  return reshaped(builder, written, type.shape);
}

}  // namespace

std::optional<ViewPath> find_view_path(const ir::Graph& graph, ValueId from, ValueId to) {
  ViewPath path;
  while (!(to == from)) {
    const ir::Value& value = graph.value(to);
    if (value.kind != ir::ValueKind::result || graph.node(value.node).operands.size() != 1 || is_opaque(graph, value.node)) return std::nullopt;
    if (graph.node(value.node).op != "detach") path.push_back({value.node, value.index});
    to = graph.node(value.node).operands.front();
  }
  std::ranges::reverse(path);
  return path;
}

ValueId replayed(NodeBuilder& builder, const ViewStep& step, ValueId value) {
  const ir::Node& node = builder.graph().node(step.node);
  const std::string op = node.op;
  return builder.call(op, {value}, ir::Attributes(node.attributes))[step.result];
}

std::optional<ValueId> scattered(NodeBuilder& builder, const ViewStep& step, ValueId viewed, ValueId part) {
  const ir::Node node = builder.graph().node(step.node);
  const ir::Type whole = builder.graph().type(viewed);
  if (node.op == "reshape") return reshaped(builder, part, whole.shape);
  if (node.op == "permute") return builder.one("permute", {part}, {{"dims", inverse(std::get<std::vector<Dim>>(*node.attribute("dims")))}});
  if (node.op == "flip") return builder.one("flip", {part}, ir::Attributes(node.attributes));
  if (node.op == "select") return builder.one("select_scatter", {viewed, part}, chosen(node.attributes, {"dim", "index"}));
  if (node.op == "slice") return builder.one("slice_scatter", {viewed, part}, chosen(node.attributes, {"dim", "end", "start", "step"}));
  if (node.op == "unbind")
    return builder.one("select_scatter", {viewed, part}, {{"dim", *node.attribute("dim")}, {"index", Dim(static_cast<std::int64_t>(step.result))}});
  if (builder.graph().type(part).element_count() == whole.element_count()) {
    if (node.op == "expand") return reshaped(builder, part, whole.shape);
  } else if (node.op == "expand") {
    return std::nullopt;
  }
  return scattered_by_place(builder, step, viewed, part);
}

}  // namespace tenon::ops
