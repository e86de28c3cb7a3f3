#include <algorithm>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"

namespace tenon::ops::gradients {
namespace {

ir::ValueId transposed(GradBuilder& g, ir::ValueId v) { return transpose_of(g.nodes(), v); }

/// Whether a value is another one transposed, as the weight of a linear layer is where it is a factor.
bool is_transposed(GradBuilder& g, ir::ValueId v) {
  const ir::Value& value = g.nodes().graph().value(v);
  if (value.kind != ir::ValueKind::result) return false;
  const ir::Node& node = g.nodes().graph().node(value.node);
  const std::vector<std::int64_t> order = transposing_order(g.type(v).rank());
  return node.op == "permute" && std::ranges::equal(std::get<std::vector<ir::Dim>>(*node.attribute("dims")), order);
}

/// The product of two values, made as what it is the transpose of where `factor`, whose gradient it is, is a transpose itself: then what that is of
/// gets a product as it comes.
ir::ValueId product_for(GradBuilder& g, ir::ValueId factor, ir::ValueId left, ir::ValueId right) {
  const std::string op = g.type(factor).rank() == 2 ? "mm" : "bmm";
  return is_transposed(g, factor) ? transposed(g, g.one(op, {transposed(g, right), transposed(g, left)})) : g.one(op, {left, right});
}

}  // namespace

GradBuilder::Values matrix_product(GradBuilder& g) {
  return {product_for(g, g.operand(0), g.gradient(), transposed(g, g.operand(1))), product_for(g, g.operand(1), transposed(g, g.operand(0)), g.gradient())};
}

}  // namespace tenon::ops::gradients
