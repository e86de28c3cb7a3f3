#include <algorithm>
#include <cmath>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"
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

/// The distances from the mean, times twice `upper` over the degrees of freedom.
ValueId handed_by_variance(GradBuilder& g, const Reduced& r, ValueId upper) {
  const DType t = g.type(upper).dtype;
  const ValueId x = g.nodes().cast(g.operand(), t);
  const ValueId distance = g.one("sub", {x, g.one("mean", {x}, {{"dim", r.dims}, {"dtype", t}, {"keepdim", true}})});
  const ValueId share = g.one("div", {g.one("mul", {upper, g.number(2)}), g.nodes().literal(degrees_of_freedom(g.query()))});
  return g.nodes().cast(g.one("mul", {share, distance}), g.type(g.operand()).dtype);
}

/// A result or its gradient as it is computed with, with the reduced dimensions.
ValueId kept(GradBuilder& g, const Reduced& r, ValueId v) { return g.nodes().cast(g.reshape(v, r.kept), compute_type(g.type(v).dtype)); }

}  // namespace

ValueId evenly(GradBuilder& g, ValueId equal, ValueId value, ValueId upper, std::vector<Dim> dims) {
  const ValueId both_nan = g.one("logical_and", {g.one("isnan", {g.operand()}), g.one("isnan", {value})}), here = g.one("logical_or", {equal, both_nan});
  const ValueId share = g.one("div", {upper, g.sum(g.nodes().cast(here, g.type(upper).dtype), std::move(dims))});
  return g.one("where", {here, share, g.number(0)});
}

/// The product of the others, which are before or behind: a quotient would not do where an element is 0, nor would its derivative.
GradBuilder::Values prod(GradBuilder& g) {
  const Reduced r(g);
  const ir::Type type = g.type(g.operand());
  const DType t = g.type(g.result()).dtype;
  std::vector<std::int64_t> order;
  const auto is_reduced = [&](std::size_t d) { return std::ranges::find(r.dims, Dim(static_cast<std::int64_t>(d))) != r.dims.end(); };
  for (const bool reduced : {false, true})
    for (std::size_t d = 0; d < type.rank(); ++d)
      if (is_reduced(d) == reduced) order.push_back(static_cast<std::int64_t>(d));
  ir::Shape lanes, moved;
  Dim count(1);
  for (std::int64_t d : order) moved.push_back(type.shape[static_cast<std::size_t>(d)]);
  for (std::size_t k = 0; k < moved.size(); ++k)
    if (k + r.dims.size() < moved.size()) lanes.push_back(moved[k]);
    else count = count * moved[k];
  lanes.push_back(count);
  const ValueId x = g.reshape(permute_by(g.nodes(), g.nodes().cast(g.operand(), t), order), lanes);
  const Dim last(static_cast<std::int64_t>(lanes.size()) - 1);
  const auto before = [&](ValueId v) {
    std::vector<Dim> none(lanes.size(), Dim(0)), front = none, back = none;
    front.back() = Dim(1), back.back() = Dim(-1);
    return g.one("cumprod", {g.one("pad", {v}, {{"after", back}, {"before", front}, {"mode", std::string("constant")}, {"value", 1.0}})}, {{"dim", last}, {"dtype", t}});
  };
  const auto turned = [&](ValueId v) { return g.one("flip", {v}, {{"dims", std::vector<Dim>{last}}}); };
  const ValueId others = g.reshape(g.one("mul", {before(x), turned(before(turned(x)))}), moved);
  std::vector<std::int64_t> inverse(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) inverse[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(k);
  return {g.nodes().cast(g.one("mul", {g.reshape(g.gradient(), r.kept), permute_by(g.nodes(), others, inverse)}), type.dtype)};
}

GradBuilder::Values extreme(GradBuilder& g) {
  const Reduced r(g);
  const DType t = g.type(g.operand()).dtype;
  const ValueId extreme = g.reshape(g.result(), r.kept), upper = g.reshape(g.gradient(), r.kept), equal = g.one("eq", {g.operand(), extreme});
  if (g.query().flag("evenly")) return {evenly(g, equal, extreme, upper, r.dims)};
  const ValueId is_extreme = g.nodes().cast(equal, t);
  return {g.one("div", {g.one("mul", {upper, is_extreme}), g.sum(is_extreme, r.dims)})};
}

GradBuilder::Values extreme_with_place(GradBuilder& g) {
  const Reduced r(g);
  if (r.kept.empty()) return {g.gradient()};
  const ValueId places = g.positions(g.type(g.operand()).shape, static_cast<std::size_t>(r.dims[0].constant()));
  const ValueId here = g.one("eq", {places, g.reshape(g.result(1), r.kept)});
  return {g.one("where", {here, g.reshape(g.gradient(), r.kept), g.number(0)})};
}

/// sign(x) |x|^(p-1) / ||x||^(p-1), in ATen's forms for the ranges of p: 0 where the norm is 0. Infinite orders share among equal extremes.
GradBuilder::Values vector_norm(GradBuilder& g) {
  const Reduced r(g);
  const double p = g.query().number("ord", 2);
  const ValueId x = g.operand(), norm = g.reshape(g.result(), r.kept), upper = g.reshape(g.gradient(), r.kept);
  const auto mul = [&](ValueId a, ValueId b) { return g.one("mul", {a, b}); };
  const auto power = [&](ValueId v, double exponent) { return g.one("pow", {v, g.number(exponent)}); };
  const auto unless_zero = [&](ValueId of, ValueId v) { return g.one("where", {g.one("eq", {of, g.number(0)}), g.number(0), v}); };
  if (p == 0) return {g.zeros(x)};
  if (p == 2) return {mul(upper, unless_zero(norm, g.one("div", {x, norm})))};
  const ValueId size = g.one("abs", {x}), sign = g.one("sign", {x});
  if (p == 1) return {mul(upper, sign)};
  if (std::isinf(p)) {
    const ValueId both_nan = g.one("logical_and", {g.one("isnan", {x}), g.one("isnan", {norm})});
    const ValueId at = g.nodes().cast(g.one("logical_or", {g.one("eq", {size, norm}), both_nan}), g.type(x).dtype);
    return {mul(mul(sign, at), g.one("div", {upper, g.sum(at, r.dims)}))};
  }
  if (p < 1) return {mul(mul(mul(sign, unless_zero(x, power(size, p - 1))), upper), power(norm, 1 - p))};
  const ValueId scaled = p < 2 ? mul(sign, power(size, p - 1)) : mul(x, power(size, p - 2));
  return {mul(scaled, unless_zero(norm, g.one("div", {upper, power(norm, p - 1)})))};
}

GradBuilder::Values logsumexp(GradBuilder& g) {
  const Reduced r(g);
  const ValueId y = kept(g, r, g.result()), x = g.nodes().cast(g.operand(), g.type(y).dtype);
  return {g.nodes().cast(g.one("mul", {kept(g, r, g.gradient()), g.one("exp", {g.one("sub", {x, y})})}), g.type(g.operand()).dtype)};
}

GradBuilder::Values var(GradBuilder& g) {
  const Reduced r(g);
  return {handed_by_variance(g, r, kept(g, r, g.gradient()))};
}

GradBuilder::Values standard_deviation(GradBuilder& g) {
  const Reduced r(g);
  const ValueId deviation = kept(g, r, g.result()), half = g.one("div", {kept(g, r, g.gradient()), g.one("mul", {deviation, g.number(2)})});
  return {handed_by_variance(g, r, g.one("where", {g.one("eq", {deviation, g.number(0)}), g.number(0), half}))};
}

}  // namespace tenon::ops::gradients
