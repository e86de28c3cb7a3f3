#include <cmath>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/reduce.h"

namespace tenon::ops::gradients {
namespace {

using ir::Dim;
using ir::ValueId;

struct Reduced {
  std::vector<Dim> dims;
  ir::Shape kept;  // the operand's shape with 1 in the reduced dimensions

  explicit Reduced(const GradBuilder& g) : kept(g.query().type(0).shape) {
    for (std::size_t d : ReductionShape(g.query()).reduced) dims.emplace_back(static_cast<std::int64_t>(d)), kept[d] = Dim(1);
  }
};

/// v / w, and 0 where w is 0.
ValueId quotient(GradBuilder& g, ValueId v, ValueId w) {
  const ValueId zero = g.one("eq", {w, g.number(0)});
  return g.one("where", {zero, g.number(0), g.one("div", {v, g.one("where", {zero, g.number(1), w})})});
}

}  // namespace

/// The product of the others: of those that are not 0 where x is the only 0, nothing where there is another 0.
GradBuilder::Values prod(GradBuilder& g) {
  const Reduced r(g);
  const DType t = g.type(g.result()).dtype;
  const ValueId x = g.nodes().cast(g.operand(), t), zero = g.one("eq", {x, g.number(0)});
  const ValueId filled = g.one("where", {zero, g.number(1), x});
  const ValueId rest = g.one("prod", {filled}, {{"dim", r.dims}, {"dtype", t}, {"keepdim", true}});
  const ValueId zeros = g.sum(g.nodes().cast(zero, t), r.dims);
  const ValueId of_zero = g.one("where", {g.one("eq", {zeros, g.number(1)}), rest, g.number(0)});
  const ValueId of_other = g.one("where", {g.one("eq", {zeros, g.number(0)}), g.one("div", {rest, filled}), g.number(0)});
  const ValueId others = g.one("where", {zero, of_zero, of_other});
  return {g.nodes().cast(g.one("mul", {g.reshape(g.gradient(), r.kept), others}), g.type(g.operand()).dtype)};
}

GradBuilder::Values extreme(GradBuilder& g) {
  const Reduced r(g);
  const DType t = g.type(g.operand()).dtype;
  const ValueId is_extreme = g.nodes().cast(g.one("eq", {g.operand(), g.reshape(g.result(), r.kept)}), t);
  const ValueId share = g.one("div", {g.reshape(g.gradient(), r.kept), g.sum(is_extreme, r.dims)});
  return {g.one("mul", {is_extreme, share})};
}

GradBuilder::Values extreme_with_place(GradBuilder& g) {
  const Reduced r(g);
  if (r.kept.empty()) return {g.gradient()};
  const ValueId places = g.positions(g.type(g.operand()).shape, static_cast<std::size_t>(r.dims[0].constant()));
  const ValueId here = g.one("eq", {places, g.reshape(g.result(1), r.kept)});
  return {g.one("where", {here, g.reshape(g.gradient(), r.kept), g.number(0)})};
}

/// d||x||_p = sign(x) |x|^(p-1) / ||x||^(p-1); 0 where the norm is 0. Infinite orders share among equal extremes.
GradBuilder::Values vector_norm(GradBuilder& g) {
  const Reduced r(g);
  const double p = g.query().number("ord", 2);
  const ValueId x = g.operand(), norm = g.reshape(g.result(), r.kept), upper = g.reshape(g.gradient(), r.kept);
  if (p == 0) return {g.zeros(x)};
  if (p == 2) return {g.one("mul", {upper, quotient(g, x, norm)})};
  const ValueId size = g.one("abs", {x}), sign = g.one("sign", {x});
  if (std::isinf(p)) {
    const ValueId at = g.nodes().cast(g.one("eq", {size, norm}), g.type(x).dtype);
    return {g.one("mul", {g.one("mul", {sign, at}), g.one("div", {upper, g.sum(at, r.dims)})})};
  }
  if (p == 1) return {g.one("mul", {upper, sign})};
  const ValueId share = g.one("pow", {quotient(g, size, norm), g.number(p - 1)});
  return {g.one("mul", {upper, g.one("where", {g.one("eq", {sign, g.number(0)}), g.number(0), g.one("mul", {sign, share})})})};
}

}  // namespace tenon::ops::gradients
