#include "core/ops/gradients/gradients.h"
#include "core/ops/infer.h"

namespace tenon::ops::gradients {
namespace {

using ir::ValueId;

/// The result and its gradient as they are computed with, and the dimension that the op is over.
struct Row {
  ValueId y, upper;
  std::vector<ir::Dim> dim;

  explicit Row(GradBuilder& g)
      : y(wide(g, g.result())), upper(wide(g, g.gradient())), dim{ir::Dim(infer::wrap_dim(g.query().constant_integer("dim"), g.type(g.operand()).rank()))} {}

  static ValueId wide(GradBuilder& g, ValueId v) { return g.nodes().cast(v, compute_type(g.type(v).dtype)); }
};

}  // namespace

GradBuilder::Values softmax(GradBuilder& g) {
  const Row row(g);
  if (g.type(g.operand()).rank() == 0) return {g.zeros(g.operand())};
  const ValueId mean = g.sum(g.one("mul", {row.upper, row.y}), row.dim);
  return {g.nodes().cast(g.one("mul", {g.one("sub", {row.upper, mean}), row.y}), g.type(g.operand()).dtype)};
}

GradBuilder::Values log_softmax(GradBuilder& g) {
  const Row row(g);
  if (g.type(g.operand()).rank() == 0) return {g.zeros(g.operand())};
  const ValueId spread = g.one("mul", {g.one("exp", {row.y}), g.sum(row.upper, row.dim)});
  return {g.nodes().cast(g.one("sub", {row.upper, spread}), g.type(g.operand()).dtype)};
}

}  // namespace tenon::ops::gradients
