#include <numeric>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"

namespace tenon::ops::gradients {
namespace {

ir::ValueId transposed(GradBuilder& g, ir::ValueId v) {
  std::vector<std::int64_t> order(g.type(v).rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute_by(g.nodes(), v, order);
}

}  // namespace

GradBuilder::Values matrix_product(GradBuilder& g) {
  const std::string op = g.type(g.operand()).rank() == 2 ? "mm" : "bmm";
  return {g.one(op, {g.gradient(), transposed(g, g.operand(1))}), g.one(op, {transposed(g, g.operand(0)), g.gradient()})};
}

}  // namespace tenon::ops::gradients
