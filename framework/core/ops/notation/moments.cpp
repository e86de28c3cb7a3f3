#include "core/ops/notation/moments.h"

#include "core/ops/notation/move.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {

using ir::Dim;
using ir::Shape;

void require_several_values(const ir::Graph& graph, Shape shape, const Dim& groups) {
  if (shape.at(1) == groups) shape.erase(shape.begin() + 1);
  for (const Dim& size : shape)
    if (!infer::may_be_positive_or_0(graph, size - Dim(1))) throw Exception(Code::unsupported, "statistics of nothing");
  for (const Dim& size : shape)
    if (infer::may_be_positive_or_0(graph, size - Dim(2))) return;
  throw Exception(Code::unsupported, "statistics of one value");
}

MeanAndVariance moments_over(NodeBuilder& b, ir::ValueId x, const std::vector<Dim>& dims) {
  const ir::Attributes over{{"dim", dims}, {"dtype", DType::f64}, {"keepdim", true}};
  const bool one_sweep = b.graph().type(x).dtype == DType::f32;
  const ir::ValueId wide = b.cast(x, DType::f64), mean = b.one("mean", {wide}, over);
  if (!one_sweep) {
    const ir::ValueId distance = b.one("sub", {wide, mean});
    return {mean, b.one("mean", {b.one("mul", {distance, distance})}, over)};
  }
  const ir::ValueId square = b.one("mean", {b.one("mul", {wide, wide})}, over);
  const ir::ValueId difference = b.one("sub", {square, b.one("mul", {mean, mean})});
  return {mean, b.one("maximum", {difference, b.literal(0.0)})};
}

MeanAndVariance moments_of_groups(NodeBuilder& b, ir::ValueId x, const Dim& groups) {
  const Shape shape = b.graph().type(x).shape;  // a copy: making nodes moves the values
  Shape grouped{shape[0], groups, floor_div(shape[1], groups)};
  grouped.insert(grouped.end(), shape.begin() + 2, shape.end());
  std::vector<Dim> dims;
  for (std::size_t d = 2; d < grouped.size(); ++d) dims.emplace_back(static_cast<std::int64_t>(d));
  const MeanAndVariance found = moments_over(b, reshape_to(b, x, grouped), dims);
  const Shape each{shape[0], groups, Dim(1)};
  return {reshape_to(b, found.mean, each), reshape_to(b, found.variance, each)};
}

ir::ValueId normalise_groups(NodeBuilder& b, ir::ValueId x, const MeanAndVariance& moments, double eps, std::optional<ir::ValueId> weight,
                             std::optional<ir::ValueId> bias) {
  const ir::Type type = b.graph().type(x);
  const Dim groups = b.graph().type(moments.mean).shape[1], in_group = floor_div(type.shape[1], groups);
  const auto of_channels = [&](ir::ValueId v) { return reshape_to(b, b.cast(v, DType::f64), {groups, in_group}); };
  const auto spread = [&](ir::ValueId v) { return expand_to(b, v, {type.shape[0], groups, in_group}); };
  ir::ValueId scale = b.one("rsqrt", {b.one("add", {spread(moments.variance), b.literal(eps)})});
  if (weight) scale = b.one("mul", {scale, of_channels(*weight)});
  const ir::ValueId centre = b.cast(moments.mean, type.dtype), rest = b.one("sub", {moments.mean, b.cast(centre, DType::f64)});
  const ir::ValueId moved = b.one("mul", {spread(rest), scale});
  const ir::ValueId shift = bias ? b.one("sub", {of_channels(*bias), moved}) : b.one("neg", {moved});
  Shape channels(type.rank(), Dim(1));
  channels[0] = type.shape[0], channels[1] = type.shape[1];
  const auto rounded = [&](ir::ValueId v) { return b.cast(reshape_to(b, v, channels), type.dtype); };
  const ir::ValueId distance = b.one("sub", {x, reshape_to(b, spread(centre), channels)});
  return b.one("add", {b.one("mul", {distance, rounded(scale)}), rounded(shift)});
}

}  // namespace tenon::ops
