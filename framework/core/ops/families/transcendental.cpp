// Exponentials, logarithms, trigonometric and hyperbolic functions.
#include <cmath>
#include <numbers>

#include "core/ops/notation/complex_parts.h"
#include "core/ops/notation/pointwise.h"

namespace tenon::ops {
namespace {

std::vector<Alias> both(std::string_view name) { return torch_names(name) + ufunc1({name}); }

/// A function that NumPy calls arcX and torch calls both aX and arcX.
std::vector<Alias> inverse_names(std::string_view short_name, std::string_view long_name) {
  return torch_names(short_name) + torch_names(long_name) + ufunc1({long_name, short_name});
}

Scalar scaled(Scalars& s, Scalar x, double factor) { return s.mul(x, s.like(x, factor)); }

/// log(exp(a) + exp(b)) around the larger of the two; equal infinities stay.
Scalar log_add(Scalars& s, Scalar a, Scalar b, Primitive exp, double per_natural) {
  const Scalar difference = s.neg(s.abs(s.sub(a, b)));
  const Scalar log1p = s.unary(Primitive::log1p, s.unary(exp, difference));
  const Scalar sum = s.add(s.maximum(a, b), per_natural == 1 ? log1p : scaled(s, log1p, per_natural));
  return s.select(s.logical_and(s.eq(a, b), s.eq(s.abs(a), s.like(a, INFINITY))), a, sum);
}

Slope log_add_slope(Primitive exp) {
  return [exp](Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) -> std::vector<Scalar> {
    const auto part = [&](Scalar mine, Scalar other) { return s.div(g, s.add(s.like(g, 1), s.unary(exp, s.sub(other, mine)))); };
    return {part(a[0], a[1]), part(a[1], a[0])};
  };
}

/// log(other), and self / other; nothing for self where it is 0 and the logarithm no number.
std::vector<Scalar> xlogy_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) {
  const Scalar zero = s.like(g, 0), none = s.logical_and(s.eq(a[0], zero), s.le(a[1], zero));
  return {s.select(none, zero, s.mul(g, s.log(s.select(none, s.like(g, 1), a[1])))), s.div(s.mul(g, a[0]), a[1])};
}

Scalar xlog1py_body(Scalars& s, Args a, const OpQuery&) {
  const Scalar zero = s.like(a[0], 0);
  return s.select(s.isnan(a[1]), a[1], s.select(s.eq(a[0], zero), zero, s.mul(a[0], s.unary(Primitive::log1p, a[1]))));
}

std::vector<Scalar> xlog1py_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) {
  const Scalar zero = s.like(g, 0), one = s.like(g, 1), none = s.logical_and(s.eq(a[0], zero), s.le(a[1], s.neg(one)));
  return {s.select(none, zero, s.mul(g, s.unary(Primitive::log1p, s.select(none, zero, a[1])))), s.div(s.mul(g, a[0]), s.add(a[1], one))};
}

/// -x log x; 0 at 0, -inf below.
Scalar entropy_body(Scalars& s, Args a, const OpQuery&) {
  const Scalar x = a[0], zero = s.like(x, 0);
  const Scalar inside = s.select(s.eq(x, zero), zero, s.like(x, -INFINITY));
  return s.select(s.isnan(x), x, s.select(s.gt(x, zero), s.mul(s.neg(x), s.log(x)), inside));
}

std::vector<Scalar> entropy_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) { return {s.mul(g, s.neg(s.add(s.like(g, 1), s.log(a[0]))))}; }

/// (x cos x - sin x) / x², with x in half turns; 0 at 0, where that is no number.
std::vector<Scalar> sinc_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) {
  const Scalar x = scaled(s, a[0], std::numbers::pi), square = s.mul(scaled(s, a[0], std::numbers::pi), a[0]), zero = s.like(g, 0);
  const Scalar slope = s.div(s.sub(s.mul(x, s.unary(Primitive::cos, x)), s.unary(Primitive::sin, x)), square);
  return {s.select(s.eq(square, zero), zero, s.mul(g, slope))};
}

/// 1 / (x (1 - x)); no number outside of [0, 1].
std::vector<Scalar> logit_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) {
  const Scalar zero = s.like(g, 0), one = s.like(g, 1), inside = s.logical_and(s.ge(a[0], zero), s.le(a[0], one));
  return {s.select(inside, s.div(g, s.mul(a[0], s.sub(one, a[0]))), s.like(g, NAN))};
}

// Of the result, as torch's are: what else the result hands on is added up before it goes through the slope, which may be infinite.
std::vector<Scalar> sqrt_slope(Scalars& s, Args, Scalar result, Scalar g, const OpQuery&) { return {s.div(g, s.mul(s.like(g, 2), result))}; }

std::vector<Scalar> rsqrt_slope(Scalars& s, Args, Scalar result, Scalar g, const OpQuery&) {
  return {s.mul(s.mul(s.like(g, -0.5), g), s.mul(result, s.mul(result, result)))};
}

Scalar xlogy_body(Scalars& s, Args a, const OpQuery&) {
  const Scalar zero = s.like(a[0], 0);
  return s.select(s.isnan(a[1]), a[1], s.select(s.eq(a[0], zero), zero, s.mul(a[0], s.log(a[1]))));
}

Scalar sinc_body(Scalars& s, Args a, const OpQuery&) {
  const Scalar x = scaled(s, s.select(s.eq(a[0], s.like(a[0], 0)), s.like(a[0], 1e-20), a[0]), std::numbers::pi);  // 0 / 0 raises a flag
  return s.div(s.unary(Primitive::sin, x), x);
}

/// Within [eps, 1 - eps] where eps is given.
Values logit(ForeignArguments& a) {
  ir::ValueId x = a.value("self");
  if (!is_float(a.type(x).dtype)) x = a.builder().cast(x, a.default_float());
  if (a.given("eps")) {
    const double eps = a.number("eps", 0);
    if (!(eps <= 0.5)) throw Exception(Code::unsupported, "logit with eps above a half, or nan");
    x = a.one("clamp_max", {a.one("clamp_min", {x, a.builder().literal(eps)}), a.builder().literal(1 - eps)});
  }
  return a.call("logit", {x});
}

/// e^x (cos y + i sin y), as C99 G.6.3.1 has it for zero, infinite and NaN parts. Where e^x alone would overflow, its last factor comes last.
Parts complex_exp(ComplexFormula& f, std::span<const Parts> z, const OpQuery& q, Flavour) {
  const ir::ValueId x = z[0].real, y = z[0].imaginary;
  const double most = q.type(0).dtype == DType::c128 ? 709 : 88;
  const ir::ValueId large = f.two("gt", x, f.number(most)), size = f.one("exp", f.where(large, f.sub(x, f.number(most)), x));
  const auto scaled = [&](ir::ValueId turn) {
    const ir::ValueId product = f.mul(size, turn);
    return f.where(large, f.mul(product, f.number(std::exp(most))), product);
  };
  const ir::ValueId cosine = f.one("cos", y), vanishes = f.two("eq", x, f.number(-INFINITY)), lost = f.two("logical_and", f.two("eq", x, f.number(INFINITY)), f.one("isnan", cosine));
  const ir::ValueId real = f.where(lost, x, f.where(vanishes, size, scaled(cosine)));
  return {real, f.where(f.two("eq", y, f.number(0)), y, f.where(vanishes, size, scaled(f.one("sin", y))))};
}

Family exponentials() {
  return {
      unary_float("sqrt", Primitive::sqrt, both("sqrt"), Fill::positive),
      unary_float("rsqrt", Primitive::rsqrt, torch_names("rsqrt"), Fill::positive),
      with_complex(unary_float("exp", Primitive::exp, both("exp")), complex_exp),
      unary_float("exp2", Primitive::exp2, both("exp2") + names({"torch.special.exp2"})),
      unary_float("expm1", Primitive::expm1, both("expm1") + names({"torch.special.expm1"})),
      unary_float("log", Primitive::log, both("log"), Fill::positive),
      unary_float("log2", Primitive::log2, both("log2"), Fill::positive),
      unary_float("log10", Primitive::log10, both("log10"), Fill::positive),
      unary_float("log1p", Primitive::log1p, both("log1p") + names({"torch.special.log1p"}), Fill::positive),
      binary_float(
          "logaddexp", [](Scalars& s, Args a, const OpQuery&) { return log_add(s, a[0], a[1], Primitive::exp, 1); },
          torch_names("logaddexp") + ufunc2({"logaddexp"})),
      binary_float(
          "logaddexp2", [](Scalars& s, Args a, const OpQuery&) { return log_add(s, a[0], a[1], Primitive::exp2, std::numbers::log2e); },
          torch_names("logaddexp2") + ufunc2({"logaddexp2"})),
      binary_float("xlog1py", xlog1py_body, names({"torch.special.xlog1py"}, "(self, other, *, out=None)")),
      unary_float("entr", entropy_body, names({"torch.special.entr"}, "(self, *, out=None)"), Fill::positive),
      binary_float("xlogy", xlogy_body, torch_names("xlogy") + names({"torch.special.xlogy"})),
      unary_float(
          "logit", [](Scalars& s, Args a, const OpQuery&) { return s.log(s.div(a[0], s.sub(s.like(a[0], 1), a[0]))); },
          torch_names("logit", "(self, eps=None, *, out=None)", logit), Fill::probability),
  };
}

Family trigonometry() {
  return {
      unary_float("sin", Primitive::sin, both("sin")),
      unary_float("cos", Primitive::cos, both("cos")),
      unary_float("tan", Primitive::tan, both("tan"), Fill::unit),
      unary_float("asin", Primitive::asin, inverse_names("asin", "arcsin"), Fill::unit),
      unary_float("acos", Primitive::acos, inverse_names("acos", "arccos"), Fill::unit),
      unary_float("atan", Primitive::atan, inverse_names("atan", "arctan")),
      unary_float("sinh", Primitive::sinh, both("sinh")),
      unary_float("cosh", Primitive::cosh, both("cosh")),
      unary_float("tanh", Primitive::tanh, both("tanh") + names({"torch.nn.functional.tanh"})),
      unary_float("asinh", Primitive::asinh, inverse_names("asinh", "arcsinh")),
      unary_float(
          "acosh", [](Scalars& s, Args a, const OpQuery&) { return s.unary(Primitive::acosh, a[0]); }, inverse_names("acosh", "arccosh"),
          Fill::positive),
      unary_float("atanh", Primitive::atanh, inverse_names("atanh", "arctanh"), Fill::unit),
      binary_float(
          "atan2", [](Scalars& s, Args a, const OpQuery&) { return s.binary(Primitive::atan2, a[0], a[1]); },
          torch_names("atan2") + torch_names("arctan2") + ufunc2({"arctan2", "atan2"})),
      unary_float(
          "deg2rad", [](Scalars& s, Args a, const OpQuery&) { return scaled(s, a[0], std::numbers::pi / 180); },
          torch_names("deg2rad") + ufunc1({"deg2rad", "radians"})),
      unary_float(
          "rad2deg", [](Scalars& s, Args a, const OpQuery&) { return scaled(s, a[0], 180 / std::numbers::pi); },
          torch_names("rad2deg") + ufunc1({"rad2deg", "degrees"})),
      unary_float("sinc", sinc_body,
                  torch_names("sinc") + names({"torch.special.sinc"}) +
                      names({"numpy.sinc"}, "(x -> self)",
                            [](ForeignArguments& a) {
                              const ir::ValueId x = a.value("self");
                              return a.call("sinc", {is_float(a.type(x).dtype) ? x : a.builder().cast(x, DType::f64)});
                            })),
      unary_float("erf", Primitive::erf, torch_names("erf") + names({"torch.special.erf"})),
      unary_float("erfc", Primitive::erfc, torch_names("erfc") + names({"torch.special.erfc"})),
      unary_float("lgamma", Primitive::lgamma, torch_names("lgamma") + names({"torch.special.gammaln"}), Fill::positive),
  };
}

}  // namespace

Family transcendental_ops() {
  Family all = exponentials();
  for (Op& op : trigonometry()) all.push_back(std::move(op));
  return with_slopes(std::move(all), {{"entr", entropy_slope},
                                      {"logaddexp", log_add_slope(Primitive::exp)},
                                      {"logaddexp2", log_add_slope(Primitive::exp2)},
                                      {"logit", logit_slope},
                                      {"rsqrt", rsqrt_slope},
                                      {"sinc", sinc_slope},
                                      {"sqrt", sqrt_slope},
                                      {"xlog1py", xlog1py_slope},
                                      {"xlogy", xlogy_slope}});
}

}  // namespace tenon::ops
