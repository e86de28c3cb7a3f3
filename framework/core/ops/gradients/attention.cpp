#include "core/ops/gradients/gradients.h"

namespace tenon::ops::gradients {

GradBuilder::Values attention(GradBuilder& g) {
  GradBuilder::Values operands{g.gradient()};
  for (std::size_t k = 0; k < g.operand_count(); ++k) operands.push_back(g.operand(k));
  GradBuilder::Values found = g.nodes().call("attention_gradients", std::move(operands), {{"is_causal", g.query().flag("is_causal")}, {"scale", g.query().number("scale")}});
  found.resize(g.operand_count());
  return found;
}

}  // namespace tenon::ops::gradients
