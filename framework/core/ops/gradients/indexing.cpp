#include "core/ops/gradients/gradients.h"

namespace tenon::ops::gradients {

using ir::Dim;
using ir::ValueId;

/// A row gets what its uses are handed: nothing for the padding, and the mean where rows are scaled by how often they occur.
GradBuilder::Values embedding(GradBuilder& g) {
  const OpQuery& q = g.query();
  if (q.flag("sparse")) throw Exception(Code::unsupported, "embedding has no sparse gradient");
  const ValueId indices = g.operand(1);
  ir::Shape column = g.shape(indices);
  column.emplace_back(1);
  ValueId handed = g.gradient();
  if (q.find("padding_idx")) {
    const ValueId padding = g.one("eq", {g.reshape(indices, column), g.nodes().literal(q.integer("padding_idx"))});
    handed = g.one("where", {padding, g.number(0), handed});
  }
  const auto added = [&](ValueId to, ValueId values) { return g.one("index_put", {to, values, indices}, {{"accumulate", true}, {"dims", std::vector<Dim>{Dim(0)}}}); };
  if (q.flag("scale_grad_by_freq")) {
    const auto filled = [&](double value, ir::Shape shape) { return g.nodes().full(value, g.type(handed).dtype, std::move(shape)); };
    const ValueId uses = added(filled(0, {g.shape(g.operand())[0]}), filled(1, g.shape(indices)));
    const ValueId own = g.one("index", {uses, indices}, {{"dims", std::vector<Dim>{Dim(0)}}});
    handed = g.one("div", {handed, g.reshape(own, column)});
  }
  return {added(g.zeros(g.operand()), handed), {}};
}

}  // namespace tenon::ops::gradients
