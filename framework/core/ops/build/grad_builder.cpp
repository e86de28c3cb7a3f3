#include "core/ops/build/grad_builder.h"

namespace tenon::ops {

using ir::Dim;
using ir::ValueId;

ValueId GradBuilder::gradient(std::size_t k) {
  if (!gradients_[k]) gradients_[k] = zeros(results_[k]);
  return gradients_[k];
}

ValueId GradBuilder::zeros(ValueId like) {
  const ir::Type t = type(like);
  return nodes_.full(0.0, t.dtype, t.shape);
}

ValueId GradBuilder::positions(const ir::Shape& shape, std::size_t dim) {
  const ValueId count = one("arange", {}, {{"dtype", DType::i64}, {"end", shape[dim]}, {"start", Dim(0)}, {"step", Dim(1)}});
  ir::Shape alone(shape.size(), Dim(1));
  alone[dim] = shape[dim];
  return reshape(count, std::move(alone));
}

ValueId GradBuilder::reshape(ValueId v, ir::Shape to) {
  return shape(v) == to ? v : one("reshape", {v}, {{"shape", std::move(to)}});
}

ValueId GradBuilder::sum(ValueId v, std::vector<Dim> dims) {
  return one("sum", {v}, {{"dim", std::move(dims)}, {"dtype", type(v).dtype}, {"keepdim", true}});
}

std::function<std::vector<ValueId>(NodeBuilder&, const OpQuery&, std::span<const ValueId>, std::span<const ValueId>)> written(
    GradBuilder::Values (*gradient)(GradBuilder&)) {
  return [gradient](NodeBuilder& nodes, const OpQuery& query, std::span<const ValueId> results, std::span<const ValueId> gradients) {
    GradBuilder builder(nodes, query, results, gradients);
    return gradient(builder);
  };
}

}  // namespace tenon::ops
