// Activation functions of neural networks, as torch.nn.functional defines them.
#include <cmath>
#include <numbers>

#include "core/ops/foreign/promotion.h"
#include "core/ops/notation/pointwise.h"

namespace tenon::ops {
namespace {

/// torch.nn.functional's name, with the in-place switch that is refused when set.
std::vector<Alias> functional(std::string_view name, std::string signature = "(input -> self, inplace=False)", Adapt adapt = {}) {
  return {{fmt::format("torch.nn.functional.{}", name), std::move(signature), std::move(adapt)}};
}

/// torch takes integers, too: as the default float.
Adapt as_float(std::string op) {
  return [op](ForeignArguments& a) {
    const ir::ValueId x = a.value("self");
    return a.call(op, {is_float(a.type(x).dtype) ? x : a.builder().cast(x, a.default_float())});
  };
}

/// Of integers the divisor is an integer, too, and may wrap around.
Values softsign(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  if (is_float(a.type(x).dtype)) return a.call("softsign", {x});
  return a.call("div", {x, a.one("add", {a.one("abs", {x}), a.builder().literal(ir::Dim(1))})});
}

/// A number beside integers, truncated.
ir::ValueId whole(ForeignArguments& a, double number) {
  TENON_USER_CHECK(std::abs(number) < 0x1p63, "value cannot be converted to type int64_t without overflow");
  return a.builder().literal(ir::Dim(static_cast<std::int64_t>(number)));
}

/// Of integers a choice; the value is truncated.
Values threshold(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  if (is_float(a.type(x).dtype)) return a.call("threshold", {x}, {{"threshold", a.number("threshold", 0)}, {"value", a.number("value", 0)}});
  TENON_USER_CHECK(!is_bool(a.type(x).dtype), "\"threshold_cpu\" not implemented for 'Bool'");
  const ir::ValueId limit = whole(a, a.number("threshold", 0)), value = whole(a, a.number("value", 0));
  return {a.builder().one("where", {a.one("le", {x, limit}), value, x})};
}

Values celu(ForeignArguments& a) {
  const double alpha = a.number("alpha", 1);
  TENON_USER_CHECK(alpha != 0, "alpha cannot be 0 for CELU");
  return a.call("celu", {a.value("self")}, {{"alpha", alpha}});
}

/// Of integers a clamp; the bounds are truncated.
Adapt clamp_or(std::string op, double low, double high) {
  return [=](ForeignArguments& a) -> Values {
    const ir::ValueId x = a.value("self");
    const double least = a.number("min_val", low), most = a.number("max_val", high);
    TENON_USER_CHECK(!(least > most), "min_val cannot be greater than max_val");
    ir::Attributes bounds;
    if (op == "hardtanh") bounds = {{"max_val", most}, {"min_val", least}};
    if (is_float(a.type(x).dtype)) return a.call(op, {x}, bounds);
    TENON_USER_CHECK(!is_bool(a.type(x).dtype), "Bool inputs not supported for {}", op);
    const ir::ValueId above = a.one("clamp_min", {x, whole(a, least)});
    return {a.one("clamp_max", {above, whole(a, most)})};
  };
}

Values softshrink(ForeignArguments& a) {
  const double lambda = a.number("lambd", 0.5);
  TENON_USER_CHECK(lambda >= 0 && std::isfinite(lambda), "lambda must be a number from 0, but is {}", lambda);
  return a.call("softshrink", {a.value("self")}, {{"lambd", lambda}});
}

/// In training the slopes are random, which no op here draws.
Values randomised_relu(ForeignArguments& a) {
  if (a.flag("training")) throw Exception(Code::unsupported, "rrelu in training");
  const double lower = a.number("lower", 1.0 / 8), upper = a.number("upper", 1.0 / 3);
  TENON_USER_CHECK(lower <= upper && std::isfinite(lower) && std::isfinite(upper), "the bounds of rrelu are finite, and the lower one is no more than the upper one");
  return a.call("leaky_relu", {a.value("self")}, {{"negative_slope", (lower + upper) / 2}});
}

Scalar relu(Scalars& s, Scalar x) { return s.maximum(x, s.like(x, 0)); }
Scalar clamp(Scalars& s, Scalar x, double low, double high) { return s.minimum(s.maximum(x, s.like(x, low)), s.like(x, high)); }
Scalar sigmoid(Scalars& s, Scalar x) { return s.div(s.like(x, 1), s.add(s.like(x, 1), s.exp(s.neg(x)))); }
Scalar softplus(Scalars& s, Scalar x) { return s.unary(Primitive::log1p, s.exp(x)); }

Op activation(std::string name, std::string attributes, Body body, std::vector<Alias> aliases, ir::Attributes sample = {}) {
  Op op = pointwise(std::move(name), fmt::format("(Tensor self{}) -> Tensor", attributes), Domain::floats, Promotion::none, std::move(body),
                    std::move(aliases));
  op.samples = [sample] {
    auto all = pointwise_samples(1, Domain::floats);
    if (!sample.empty())
      for (Sample& s : pointwise_samples(1, Domain::floats, Fill::normal, sample)) all.push_back(std::move(s));
    return all;
  };
  return op;
}

// Klambauer et al., Self-Normalizing Neural Networks, 2017: the constants to float64 precision, as in ATen.
constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;

/// The exponential linear unit: scale * (x < 0 ? alpha * (exp(x * input_scale) - 1) : x).
Scalar elu(Scalars& s, Scalar x, double alpha, double scale, double input_scale) {
  const Scalar zero = s.like(x, 0);
  const Scalar inner = input_scale == 1 ? x : s.mul(x, s.like(x, input_scale));
  // The branch that is not taken is kept from overflowing, so that it sets no floating-point flag.
  const Scalar negative = s.mul(s.unary(Primitive::expm1, s.minimum(inner, zero)), s.like(x, alpha * scale));
  const Scalar positive = scale == 1 ? x : s.mul(x, s.like(x, scale));
  return s.select(s.lt(x, zero), negative, positive);
}

/// The tanh form is computed as x * sigmoid(2 inner), which is the same: one exponential of what is never positive, so that neither it
/// nor a derivative overflows, and no digits are lost where 1 + tanh(inner) is small.
Scalar gelu_body(Scalars& s, Args a, const OpQuery& q) {
  const Scalar x = a[0], one = s.like(x, 1);
  const std::string form = q.text("approximate", "none");
  if (form == "none") return s.mul(s.mul(x, s.like(x, 0.5)), s.add(one, s.unary(Primitive::erf, s.mul(x, s.like(x, std::numbers::sqrt2 / 2)))));
  TENON_USER_CHECK(form == "tanh", "approximate must be 'none' or 'tanh', not '{}'", form);
  const Scalar cube = s.mul(s.mul(x, x), x);
  const Scalar inner = s.mul(s.like(x, std::numbers::sqrt2 * std::numbers::inv_sqrtpi), s.add(x, s.mul(s.like(x, 0.044715), cube)));
  const Scalar e = s.exp(s.mul(s.abs(inner), s.like(x, -2)));
  return s.div(s.mul(x, s.select(s.lt(inner, s.like(x, 0)), e, one)), s.add(one, e));
}

/// Nothing is greater than nan, nor than infinity.
double softplus_threshold(const OpQuery& q) {
  const double threshold = q.number("threshold", 20);
  return std::isnan(threshold) ? INFINITY : threshold;
}

Scalar softplus_body(Scalars& s, Args a, const OpQuery& q) {
  const Scalar x = a[0];
  const double beta = q.number("beta", 1), threshold = softplus_threshold(q);
  const Scalar scaled = s.mul(x, s.like(x, beta));
  return s.select(s.gt(scaled, s.like(x, threshold)), x, s.div(softplus(s, s.minimum(scaled, s.like(x, threshold))), s.like(x, beta)));
}

/// x * tanh(softplus(x)); beyond 20 softplus is x.
Scalar mish_body(Scalars& s, Args a, const OpQuery&) {
  const Scalar x = a[0], limit = s.like(x, 20);
  const Scalar plus = s.select(s.gt(x, limit), x, softplus(s, s.minimum(x, limit)));
  return s.mul(x, s.tanh(plus));
}

Scalar log_sigmoid_body(Scalars& s, Args a, const OpQuery&) {
  return s.sub(s.minimum(a[0], s.like(a[0], 0)), softplus(s, s.neg(s.abs(a[0]))));
}

// What torch hands to the operand, at the bends as well: kernels of ATen's Activation.cpp.
using Slopes = std::vector<Scalar>;

Slopes relu_slope(Scalars& s, Args, Scalar result, Scalar g, const OpQuery&) { return {s.select(s.le(result, s.like(g, 0)), s.like(g, 0), g)}; }

/// 0 at both bounds and beyond.
Scalar between(Scalars& s, Scalar x, Scalar g, double low, double high) {
  return value_where(s, s.logical_and(s.gt(x, s.like(x, low)), s.lt(x, s.like(x, high))), g);
}

/// ATen's sixth is a float32 for every dtype.
Slopes hardsigmoid_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) { return {s.mul(between(s, a[0], g, -3, 3), s.like(g, 1.0F / 6))}; }

Slopes hardswish_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) {
  const Scalar x = a[0], three = s.like(x, 3);
  const Scalar within = s.minimum(s.maximum(x, s.neg(three)), three), inside = s.mul(g, s.add(s.div(within, three), s.like(x, 0.5)));
  return {s.select(s.le(x, s.neg(three)), s.like(g, 0), s.select(s.ge(x, three), g, inside))};
}

/// At 0 that of the exponential, whose own slope does not count there. No number where x is none, as in ATen's vectors.
Scalar elu_slope(Scalars& s, Scalar x, Scalar g, double alpha, double scale, double input_scale) {
  const Scalar zero = s.like(x, 0), inner = s.select(s.ge(x, zero), zero, s.mul(x, s.like(x, input_scale)));
  const Scalar negative = s.mul(g, s.mul(s.like(x, alpha * scale * input_scale), s.exp(inner)));
  return s.select(s.gt(x, zero), s.mul(g, s.like(x, scale)), negative);
}

/// 0 within [-lambda, lambda], and of what is no number.
Slopes shrink_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery& q) {
  return {value_where(s, s.gt(s.abs(a[0]), s.like(g, rounded_to(q.type(0).dtype, q.number("lambd", 0.5)))), g)};
}

Slopes sigmoid_slope(Scalars& s, Args, Scalar result, Scalar g, const OpQuery&) { return {s.mul(s.mul(g, s.sub(s.like(g, 1), result)), result)}; }

Slopes silu_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) {
  const Scalar one = s.like(g, 1), y = logistic(s, a[0]);
  return {s.mul(s.mul(g, y), s.add(one, s.mul(a[0], s.sub(one, y))))};
}

Slopes gelu_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery& q) {
  const Scalar x = a[0], one = s.like(x, 1), half = s.like(x, 0.5), square = s.mul(x, x);
  if (q.text("approximate", "none") == "none") {
    const Scalar integral = s.mul(half, s.add(one, s.unary(Primitive::erf, s.mul(x, s.like(x, std::numbers::sqrt2 / 2)))));
    const Scalar density = s.mul(s.exp(s.mul(square, s.like(x, -0.5))), s.like(x, std::numbers::sqrt2 / 2 * std::numbers::inv_sqrtpi));
    return {s.mul(g, s.add(integral, s.mul(x, density)))};
  }
  const Scalar factor = s.like(x, std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  const Scalar inner = s.mul(factor, s.add(x, s.mul(s.like(x, 0.044715), s.mul(square, x)))), tanh = s.tanh(inner);
  const Scalar inner_slope = s.mul(factor, s.add(one, s.mul(s.like(x, 3 * 0.044715), square)));
  const Scalar right = s.mul(s.mul(s.mul(half, x), s.sub(one, s.mul(tanh, tanh))), inner_slope);
  return {s.mul(g, s.add(s.mul(half, s.add(one, tanh)), right))};
}

Slopes softplus_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery& q) {
  const Scalar scaled = s.mul(a[0], s.like(g, q.number("beta", 1))), limit = s.like(g, softplus_threshold(q));
  return {s.select(s.gt(scaled, limit), g, s.mul(g, logistic(s, scaled)))};
}

Slopes mish_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) {
  const Scalar x = a[0], one = s.like(x, 1), limit = s.like(x, 20), beyond = s.gt(x, limit);
  const Scalar tanh = s.tanh(s.select(beyond, x, softplus(s, s.select(beyond, limit, x))));
  return {s.mul(g, s.add(tanh, s.mul(s.mul(x, logistic(s, x)), s.sub(one, s.mul(tanh, tanh)))))};
}

Slopes log_sigmoid_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) { return {s.mul(g, logistic(s, s.neg(a[0])))}; }

Slopes hardtanh_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery& q) { return {between(s, a[0], g, q.number("min_val", -1), q.number("max_val", 1))}; }

Slopes elu_slopes(Scalars& s, Args a, Scalar, Scalar g, const OpQuery& q) {
  return {elu_slope(s, a[0], g, q.number("alpha", 1), q.number("scale", 1), q.number("input_scale", 1))};
}

Slopes celu_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery& q) { return {elu_slope(s, a[0], g, q.number("alpha", 1), 1, 1 / q.number("alpha", 1))}; }

Slopes selu_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) { return {elu_slope(s, a[0], g, kSeluAlpha, kSeluScale, 1)}; }

Slopes relu6_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) { return {between(s, a[0], g, 0, 6)}; }

Family piecewise_linear() {
  Op relu_op = pointwise(
      "relu", "(Tensor self) -> Tensor", Domain::numbers, Promotion::none, [](Scalars& s, Args a, const OpQuery&) { return relu(s, a[0]); },
      torch_names("relu") + functional("relu"));
  return {
      std::move(relu_op),
      activation(
          "relu6", "", [](Scalars& s, Args a, const OpQuery&) { return clamp(s, a[0], 0, 6); }, functional("relu6", "(input -> self, inplace=False)", clamp_or("relu6", 0, 6))),
      activation("hardtanh", ", Scalar min_val=-1, Scalar max_val=1",
                 [](Scalars& s, Args a, const OpQuery& q) { return clamp(s, a[0], q.number("min_val", -1), q.number("max_val", 1)); },
                 functional("hardtanh", "(input -> self, min_val=-1.0, max_val=1.0, inplace=False)", clamp_or("hardtanh", -1, 1)),
                 {{"max_val", 3.0}, {"min_val", -2.0}}),
      activation("leaky_relu", ", Scalar negative_slope=0.01",
                 [](Scalars& s, Args a, const OpQuery& q) {
                   return s.select(s.gt(a[0], s.like(a[0], 0)), a[0], s.mul(a[0], s.like(a[0], q.number("negative_slope", 0.01))));
                 },
                 functional("leaky_relu", "(input -> self, negative_slope=0.01, inplace=False)") +
                     names({"torch.rrelu"}, "(input -> self, lower=0.125, upper=0.3333333333333333, training=False, generator=None)", randomised_relu),
                 {{"negative_slope", 0.2}}),
      activation(
          "hardsigmoid", "",
          [](Scalars& s, Args a, const OpQuery&) { return s.div(clamp(s, s.add(a[0], s.like(a[0], 3)), 0, 6), s.like(a[0], 6)); },
          functional("hardsigmoid")),
      activation(
          "hardswish", "",
          [](Scalars& s, Args a, const OpQuery&) {
            return s.div(s.mul(a[0], clamp(s, s.add(a[0], s.like(a[0], 3)), 0, 6)), s.like(a[0], 6));
          },
          functional("hardswish")),
      activation("threshold", ", Scalar threshold=0, Scalar value=0",
                 [](Scalars& s, Args a, const OpQuery& q) {
                   return s.select(s.le(a[0], s.like(a[0], q.number("threshold", 0))), s.like(a[0], q.number("value", 0)), a[0]);
                 },
                 functional("threshold", "(input -> self, threshold, value, inplace=False)", threshold) + names({"torch.threshold"}, "(self, threshold, value)", threshold),
                 {{"threshold", 0.5}, {"value", 7.0}}),
      activation(
          "hardshrink", ", Scalar lambd=0.5",
          [](Scalars& s, Args a, const OpQuery& q) {
            const double lambda = rounded_to(q.type(0).dtype, q.number("lambd", 0.5));
            return s.select(s.le(s.abs(a[0]), s.like(a[0], lambda)), s.like(a[0], 0), a[0]);
          },
          functional("hardshrink", "(input -> self, lambd=0.5)") + torch_names("hardshrink")),
      activation(
          "softshrink", ", Scalar lambd=0.5",
          [](Scalars& s, Args a, const OpQuery& q) {
            const Scalar lambda = s.like(a[0], q.number("lambd", 0.5));
            const Scalar within = s.select(s.eq(a[0], a[0]), s.like(a[0], 0), a[0]);
            return s.select(s.gt(a[0], lambda), s.sub(a[0], lambda), s.select(s.lt(a[0], s.neg(lambda)), s.add(a[0], lambda), within));
          },
          functional("softshrink", "(input -> self, lambd=0.5)", softshrink)),
  };
}

Family smooth() {
  const std::string alpha_signature = "(input -> self, alpha=1.0, inplace=False)";
  return {
      unary_float(
          "sigmoid", [](Scalars& s, Args a, const OpQuery&) { return sigmoid(s, a[0]); },
          torch_names("sigmoid") + functional("sigmoid", "(input -> self)") + names({"torch.special.expit"})),
      activation(
          "silu", "", [](Scalars& s, Args a, const OpQuery&) { return s.div(a[0], s.add(s.like(a[0], 1), s.exp(s.neg(a[0])))); },
          functional("silu")),
      activation("gelu", ", *, str approximate='none'", gelu_body, functional("gelu", "(input -> self, *, approximate='none')"),
                 {{"approximate", std::string("tanh")}}),
      activation("elu", ", Scalar alpha=1, Scalar scale=1, Scalar input_scale=1",
                 [](Scalars& s, Args a, const OpQuery& q) {
                   return elu(s, a[0], q.number("alpha", 1), q.number("scale", 1), q.number("input_scale", 1));
                 },
                 functional("elu", alpha_signature), {{"alpha", 0.7}, {"input_scale", 1.5}, {"scale", 1.1}}),
      activation(
          "selu", "",
          [](Scalars& s, Args a, const OpQuery&) {
            return elu(s, a[0], kSeluAlpha, kSeluScale, 1);
          },
          names({"torch.selu"}) + functional("selu")),
      activation("celu", ", Scalar alpha=1",
                 [](Scalars& s, Args a, const OpQuery& q) { return elu(s, a[0], q.number("alpha", 1), 1, 1 / q.number("alpha", 1)); },
                 names({"torch.celu"}, "(self, alpha=1.0)", celu) + functional("celu", alpha_signature, celu), {{"alpha", 1.3}}),
      activation("softplus", ", Scalar beta=1, Scalar threshold=20", softplus_body,
                 functional("softplus", "(input -> self, beta=1, threshold=20)"), {{"beta", 2.0}, {"threshold", 3.0}}),
      activation("mish", "", mish_body, functional("mish")),
      activation("logsigmoid", "", log_sigmoid_body, functional("logsigmoid", "(input -> self)") + names({"torch._C._nn.log_sigmoid"}, "(self)")),
      activation(
          "softsign", "", [](Scalars& s, Args a, const OpQuery&) { return s.div(a[0], s.add(s.like(a[0], 1), s.abs(a[0]))); },
          functional("softsign", "(input -> self)", softsign)),
      activation(
          "tanhshrink", "", [](Scalars& s, Args a, const OpQuery&) { return s.sub(a[0], s.tanh(a[0])); },
          functional("tanhshrink", "(input -> self)", as_float("tanhshrink"))),
  };
}

}  // namespace

Family activation_ops() {
  Family all = piecewise_linear();
  for (Op& op : smooth()) all.push_back(std::move(op));
  return with_slopes(std::move(all), {{"celu", celu_slope},
                                      {"elu", elu_slopes},
                                      {"gelu", gelu_slope},
                                      {"hardshrink", shrink_slope},
                                      {"hardsigmoid", hardsigmoid_slope},
                                      {"hardswish", hardswish_slope},
                                      {"hardtanh", hardtanh_slope},
                                      {"logsigmoid", log_sigmoid_slope},
                                      {"mish", mish_slope},
                                      {"relu", relu_slope},
                                      {"relu6", relu6_slope},
                                      {"selu", selu_slope},
                                      {"sigmoid", sigmoid_slope},
                                      {"silu", silu_slope},
                                      {"softplus", softplus_slope},
                                      {"softshrink", shrink_slope}});
}

}  // namespace tenon::ops
