#include "core/ops/gradients/gradient.h"
#include "core/ops/gradients/gradients.h"

namespace tenon::ops::gradients {
namespace {

using ir::ValueId;

ValueId as_operand(GradBuilder& g, ValueId gradient, std::size_t k) { return sum_to_shape(g.nodes(), gradient, g.shape(g.operand(k))); }

}  // namespace

/// ATen: (x - y) / max((1 - x) x, 1e-12), and log(1 - x) - log(x).
GradBuilder::Values binary_cross_entropy(GradBuilder& g) {
  const ValueId x = g.operand(0), y = g.operand(1), rest = g.one("sub", {g.number(1), x});
  const ValueId slope = g.one("div", {g.one("sub", {x, y}), g.one("clamp_min", {g.one("mul", {rest, x}), g.number(1e-12)})});
  const ValueId of_target = g.one("sub", {g.one("log", {rest}), g.one("log", {x})});
  return {as_operand(g, g.one("mul", {g.gradient(), slope}), 0), as_operand(g, g.one("mul", {g.gradient(), of_target}), 1)};
}

}  // namespace tenon::ops::gradients
