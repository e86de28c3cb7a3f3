// Sums, products, quotients and powers.
#include <algorithm>
#include <limits>

#include "core/ops/notation/complex_parts.h"
#include "core/ops/notation/pointwise.h"
#include "core/ops/notation/scaled_operands.h"

namespace tenon::ops {
namespace {

/// torch.Tensor.__rtruediv__: the reciprocal is taken first, which rounds differently and promotes by itself.
Values reciprocal_times(ForeignArguments& a) {
  return is_complex(a.type(a.value("other")).dtype) ? a.call("div", {a.value("self"), a.value("other")}) : a.call("mul", {a.one("reciprocal", {a.value("other")}), a.value("self")});
}

/// torch.Tensor.__rmul__: a number in front is what torch multiplies with.
Values times_number(ForeignArguments& a) {
  const ir::ValueId number = a.value("self"), other = a.value("other");
  return a.is_tensor("self") ? a.call("mul", {other, number}) : a.call("mul", {number, other});
}

/// NumPy's is of floats; torch's keeps the dtype, which both must have.
Values heaviside(ForeignArguments& a) {
  Values xy{a.value("self"), a.value("other")};
  if (a.numpy()) a.promote(xy, Promotion::common_float);
  TENON_USER_CHECK(a.numpy() || a.type(xy[0]).dtype == a.type(xy[1]).dtype, "heaviside is not yet implemented for tensors with different dtypes.");
  if (a.numpy() || !is_float(a.type(xy[0]).dtype)) return a.call("heaviside", xy);
  NodeBuilder& b = a.builder();  // torch asks whether a number is positive, which nan is not
  const DType dtype = a.type(xy[0]).dtype;
  const ir::ValueId nan = b.one("isnan", {xy[0]}), zero = b.literal(0.0);
  return {b.one("where", {nan, b.one("full", {zero}, {{"dtype", dtype}, {"size", ir::Shape{}}}), a.one("heaviside", xy)})};
}

bool is_zero(const ForeignArgument& x) {
  if (const auto* d = x.as<ir::Dim>()) return *d == ir::Dim(0);
  return x.as<bool>() && !*x.as<bool>();
}

bool is_on_device(ForeignArguments& a, ir::ValueId x) { return a.graph().value(x).kind != ir::ValueKind::literal && !a.type(x).device.is_host(); }
bool is_known_number(const ForeignArgument& x) { return x.as<bool>() || (x.as<ir::Dim>() && x.as<ir::Dim>()->is_constant()); }

/// The divisor, in a node that fails where it is zero.
ir::ValueId checked_divisor(ForeignArguments& a, ir::ValueId divisor) {
  NodeBuilder& b = a.builder();
  if (a.type(divisor).rank() > 0) return b.one("nonzero_divisor", {divisor});
  const ir::ValueId vector = b.one("reshape", {divisor}, {{"shape", std::vector<ir::Dim>{1}}});
  return b.one("reshape", {b.one("nonzero_divisor", {vector})}, {{"shape", std::vector<ir::Dim>{}}});
}

/// NumPy's remainder of floats: a zero has the sign of the divisor.
Values numpy_remainder(ForeignArguments& a, const Values& xy) {
  const ir::ValueId rest = a.one("remainder", xy);
  return {a.one("where", {a.one("eq", {rest, a.builder().literal(0.0)}), a.one("copysign", {rest, xy[1]}), rest})};
}

/// Integer division: torch raises for a zero divisor, on a device it gives anything; NumPy gives 0 (and computes bools as int8).
Adapt integer_division(std::string op) {
  return [op](ForeignArguments& a) -> Values {
    std::vector<ir::ValueId> xy{a.value("self"), a.value("other")};
    a.round_numbers(op, xy, Promotion::common);
    DType t = a.promoted(xy, Promotion::common);
    if (a.numpy()) {
      if (a.given("dtype")) t = *a.dtype("dtype");
      if (is_bool(t)) t = DType::i8;
      a.convert(xy, t);
      return op == "remainder" && is_float(t) ? numpy_remainder(a, xy) : a.call(op, xy);
    }
    if (is_int(t)) {
      if (is_zero(a["other"])) throw Exception(Code::invalid_argument, "ZeroDivisionError");
      if (is_known_number(a["other"]) || std::ranges::any_of(xy, [&](ir::ValueId x) { return is_on_device(a, x); })) return a.call(op, xy);
      xy[1] = checked_divisor(a, a.builder().cast(a.tensor(xy[1]), t));
    }
    return a.call(op, xy);
  };
}

/// Division that gives floats, unless torch is told to round: NumPy's true_divide gives float64 for all integers.
Values true_divide(ForeignArguments& a) {
  const std::string mode = a.numpy() ? "" : a.text("rounding_mode", "");
  if (mode == "floor" || mode == "trunc") return integer_division(mode + "_divide")(a);
  TENON_USER_CHECK(mode.empty(), "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'", mode);
  std::vector<ir::ValueId> xy{a.value("self"), a.value("other")};
  a.round_numbers("div", xy, Promotion::common);
  if (a.numpy()) {
    DType t = a.promoted(xy, Promotion::common);
    if (a.given("dtype")) t = *a.dtype("dtype");
    if (!is_float(t) && !is_complex(t)) t = DType::f64;
    a.convert(xy, t);
  }
  return a.call("div", xy);
}

Values power(ForeignArguments& a) {
  std::vector<ir::ValueId> xy{a.value("self"), a.value("other")};
  a.round_numbers("pow", xy, Promotion::common);
  DType t = a.promoted(xy, Promotion::common);
  if (a.numpy()) {
    if (a.given("dtype")) t = *a.dtype("dtype");
    if (is_bool(t)) t = DType::i8;
    a.convert(xy, t);
  }
  if (!is_float(t) && !is_complex(t)) {
    const ir::Value& y = a.graph().value(xy[1]);
    const ir::Dim* d = y.kind == ir::ValueKind::literal ? std::get_if<ir::Dim>(&y.literal) : nullptr;
    if (d && d->is_constant() && d->constant() < 0) throw Exception(Code::invalid_argument, "Integers to negative integer powers are not allowed.");
    if (d && !d->is_constant() && !ask::is_within(*d, {0, std::numeric_limits<std::int64_t>::max()})) throw Exception(Code::unsupported, "integer powers with an exponent that is negative now, at which torch raises");
    if (a.numpy() && (!d || !d->is_constant())) throw Exception(Code::unsupported, "integer powers with exponents that are not known constants: NumPy raises for negative ones");
  }
  return a.call("pow", xy);
}

Scalar power_body(Scalars& s, Args a, const OpQuery& q) {
  const Scalar x = a[0];
  double exponent = NAN;
  if (const ir::Literal* l = q.literal(1)) {
    if (const double* v = std::get_if<double>(l)) exponent = *v;
    if (const ir::Dim* d = std::get_if<ir::Dim>(l); d && d->is_constant()) exponent = static_cast<double>(d->constant());
  }
  if (exponent == 1) return x;
  if (exponent == 2) return s.mul(x, x);
  if (exponent == 3) return s.mul(s.mul(x, x), x);
  if (is_float(x.dtype)) {
    if (exponent == 0.5) return s.sqrt(x);
    if (exponent == -1) return s.div(s.like(x, 1), x);
  }
  return s.binary(Primitive::pow, x, a[1]);
}

/// Python's floor division of floats (CPython `float_floor_div`; torch `div_floor_floating`): not floor(a / b), which rounds up.
Scalar floor_divide_body(Scalars& s, Args a, const OpQuery&) {
  const Scalar x = a[0], y = a[1];
  if (!is_float(x.dtype)) return s.binary(Primitive::floor_div, x, y);
  const Scalar zero = s.like(x, 0), one = s.like(x, 1);
  const Scalar mod = s.binary(Primitive::fmod, x, y);
  const Scalar opposite = s.binary(Primitive::logical_xor, s.lt(y, zero), s.lt(mod, zero));
  const Scalar adjust = s.logical_and(s.binary(Primitive::ne, mod, zero), opposite);
  Scalar quotient = s.div(s.sub(x, mod), y);
  quotient = s.select(adjust, s.sub(quotient, one), quotient);
  Scalar floored = s.unary(Primitive::floor, quotient);
  floored = s.select(s.gt(s.sub(quotient, floored), s.like(x, 0.5)), s.add(floored, one), floored);
  const Scalar exact = s.div(x, y);
  floored = s.select(s.eq(quotient, zero), copy_sign(s, zero, exact), floored);
  return s.select(s.eq(y, zero), exact, floored);
}

Scalar remainder_body(Scalars& s, Args a, const OpQuery&) {
  const Scalar x = a[0], y = a[1];
  if (!is_float(x.dtype)) return s.binary(Primitive::remainder, x, y);
  const Scalar zero = s.like(x, 0);
  const Scalar mod = s.binary(Primitive::fmod, x, y);
  const Scalar opposite = s.binary(Primitive::logical_xor, s.lt(y, zero), s.lt(mod, zero));
  return s.select(s.logical_and(s.binary(Primitive::ne, mod, zero), opposite), s.add(mod, y), mod);
}

Scalar trunc_divide_body(Scalars& s, Args a, const OpQuery&) {
  if (!is_float(a[0].dtype)) return s.binary(Primitive::trunc_div, a[0], a[1]);
  return s.unary(Primitive::trunc, s.div(a[0], a[1]));
}

/// sqrt(a*a + b*b) without overflow; infinite when either is, even beside nan (C99 F.10.4.3).
Scalar hypot_body(Scalars& s, Args a, const OpQuery&) {
  const Scalar x = s.abs(a[0]), y = s.abs(a[1]);
  const Scalar large = s.maximum(x, y), small = s.minimum(x, y);
  const Scalar infinity = s.like(x, INFINITY), zero = s.like(x, 0);
  // Zero by zero would be an error, of which NumPy warns.
  const double least = x.dtype == DType::f64 ? std::numeric_limits<double>::denorm_min() : std::numeric_limits<float>::denorm_min();
  const Scalar ratio = s.div(small, s.maximum(large, s.like(x, least)));
  Scalar r = s.mul(large, s.sqrt(s.add(s.like(x, 1), s.mul(ratio, ratio))));
  r = s.select(s.eq(large, zero), zero, r);
  return s.select(s.logical_or(s.eq(x, infinity), s.eq(y, infinity)), infinity, r);
}

std::vector<Scalar> hypot_slope(Scalars& s, Args a, Scalar result, Scalar g, const OpQuery&) {
  return {s.mul(g, s.div(a[0], result)), s.mul(g, s.div(a[1], result))};
}

/// ATen's copysign_backward: the sign that the result has to self's, and 0 where self is 0.
std::vector<Scalar> copysign_slope(Scalars& s, Args a, Scalar result, Scalar g, const OpQuery&) {
  const Scalar zero = s.like(g, 0);
  return {s.mul(g, s.select(s.eq(a[0], zero), zero, s.div(result, a[0]))), zero};
}

std::vector<Scalar> reciprocal_slope(Scalars& s, Args, Scalar result, Scalar g, const OpQuery&) { return {s.mul(s.neg(g), s.mul(result, result))}; }

std::vector<Scalar> lerp_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) {
  return {s.mul(g, s.sub(s.like(g, 1), a[2])), s.mul(g, a[2]), s.mul(g, s.sub(a[1], a[0]))};
}

std::vector<Scalar> addcdiv_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery& q) {
  const Scalar value = s.like(g, q.number("value", 1)), square = s.mul(a[2], a[2]);
  return {g, s.mul(g, s.div(value, a[2])), s.mul(s.neg(g), s.div(s.mul(value, a[1]), square))};
}

/// Of self 1; of the divisor the quotient that was taken off.
Slope remainder_slope(Primitive division) {
  return [division](Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) -> std::vector<Scalar> {
    return {g, s.mul(s.neg(g), s.binary(division, a[0], a[1]))};
  };
}

/// A number of steps does not change.
std::vector<Scalar> no_slope(Scalars& s, Args, Scalar, Scalar g, const OpQuery&) { return {s.like(g, 0), s.like(g, 0)}; }

Scalar lerp_body(Scalars& s, Args a, const OpQuery&) {
  const Scalar difference = s.sub(a[1], a[0]), weight = a[2];
  const Scalar near_start = s.fma(weight, difference, a[0]);
  const Scalar near_end = s.fma(s.neg(difference), s.sub(s.like(weight, 1), weight), a[1]);
  return s.select(s.lt(s.abs(weight), s.like(weight, 0.5)), near_start, near_end);
}

Scalar scaled(Scalars& s, Scalar x, const OpQuery& q) {
  const double value = q.number("value", 1);
  return value == 1 ? x : s.mul(s.like(x, value), x);
}

/// Outside training dropout is the identity; in training it draws random numbers, which no op here does.
Values dropout(ForeignArguments& a) {
  if (a.flag("training") && a.number("p", 0.5) != 0) throw Exception(Code::unsupported, "dropout in training");
  return unchanged(a);
}

/// NumPy's `sign` and `absolute` of bool, `positive` and the like: a copy.
Values copied(ForeignArguments& a) { return a.call("clone", {a.value("self")}); }

/// The operator methods of both libraries: __add__, __radd__ (operands change places) and __iadd__.
std::vector<Alias> operators(std::string_view word, const Adapt& adapt = {}, const Adapt& torch_reflected = {}) {
  std::vector<Alias> aliases;
  for (const char* type : {"torch.Tensor", "numpy.ndarray"}) {
    aliases.push_back({fmt::format("{}.__{}__", type, word), "(self, other)", adapt});
    const bool own = torch_reflected && std::string_view(type) == "torch.Tensor";
    aliases.push_back({fmt::format("{}.__r{}__", type, word), "(self -> other, other -> self)", own ? torch_reflected : adapt});
  }
  return aliases;
}

constexpr const char* kAlpha = "(self, other, *, alpha=1)";

Family sums_and_products() {
  return {
      binary(
          "add", Domain::any,
          [](Scalars& s, Args a, const OpQuery&) { return is_bool(a[0].dtype) ? s.logical_or(a[0], a[1]) : s.add(a[0], a[1]); },
          torch_names("add", kAlpha, alpha_of("add")) + ufunc2({"add"}) + operators("add")),
      binary(
          "sub", Domain::numbers, [](Scalars& s, Args a, const OpQuery&) { return s.sub(a[0], a[1]); },
          torch_names("sub", kAlpha, alpha_of("sub")) + torch_names("subtract", kAlpha, alpha_of("sub")) +
              names({"torch.rsub"}, "(self -> other, other -> self, alpha=1)", alpha_of("sub")) + ufunc2({"subtract"}) + operators("sub", alpha_of("sub"))),
      binary(
          "mul", Domain::any,
          [](Scalars& s, Args a, const OpQuery&) { return is_bool(a[0].dtype) ? s.logical_and(a[0], a[1]) : s.mul(a[0], a[1]); },
          torch_names("mul") + torch_names("multiply") + ufunc2({"multiply"}) + operators("mul", {}, times_number)),
      binary_float(
          "div", [](Scalars& s, Args a, const OpQuery&) { return s.div(a[0], a[1]); },
          torch_names("div", "(self, other, *, rounding_mode=None)", true_divide) +
              torch_names("divide", "(self, other, *, rounding_mode=None)", true_divide) +
              torch_names("true_divide", "(self, other, *, rounding_mode=None)", true_divide) +
              ufunc2({"divide", "true_divide"}, true_divide) + operators("truediv", true_divide, reciprocal_times)),
      binary("floor_divide", Domain::numbers, floor_divide_body,
             torch_names("floor_divide", {}, integer_division("floor_divide")) +
                 ufunc2({"floor_divide"}, integer_division("floor_divide")) + operators("floordiv", integer_division("floor_divide"))),
      binary("trunc_divide", Domain::numbers, trunc_divide_body, {}),
      binary("remainder", Domain::numbers, remainder_body,
             torch_names("remainder", {}, integer_division("remainder")) + ufunc2({"remainder", "mod"}, integer_division("remainder")) +
                 operators("mod", integer_division("remainder"))),
      binary(
          "fmod", Domain::numbers, [](Scalars& s, Args a, const OpQuery&) { return s.binary(Primitive::fmod, a[0], a[1]); },
          torch_names("fmod", {}, integer_division("fmod")) + ufunc2({"fmod"}, integer_division("fmod"))),
      binary("pow", Domain::numbers, power_body,
             names({"torch.pow", "torch.Tensor.pow"}, "(self, exponent -> other)", power) + ufunc2({"power", "pow"}, power) +
                 operators("pow", power)),
      binary(
          "maximum", Domain::any, [](Scalars& s, Args a, const OpQuery&) { return s.maximum(a[0], a[1]); },
          torch_names("maximum") + ufunc2({"maximum"})),
      binary(
          "minimum", Domain::any, [](Scalars& s, Args a, const OpQuery&) { return s.minimum(a[0], a[1]); },
          torch_names("minimum") + ufunc2({"minimum"})),
      binary_float("hypot", hypot_body, torch_names("hypot") + ufunc2({"hypot"})),
      binary(
          "heaviside", Domain::any,
          [](Scalars& s, Args a, const OpQuery&) {
            const Scalar zero = s.like(a[0], 0);
            const Scalar step = s.select(s.eq(a[0], zero), a[1], s.convert(s.gt(a[0], zero), a[0].dtype));
            return is_float(a[0].dtype) ? s.select(s.isnan(a[0]), a[0], step) : step;
          },
          ufunc2({"heaviside"}, heaviside) + torch_names("heaviside", "(self, values -> other, *, out=None)", heaviside)),
      binary_float(
          "copysign", [](Scalars& s, Args a, const OpQuery&) { return copy_sign(s, a[0], a[1]); },
          torch_names("copysign") + ufunc2({"copysign"})),
  };
}

/// The value itself, as a constant to whoever differentiates the graph.
Op detach_op() {
  Op op = unary("detach", Domain::any, [](Scalars&, Args x, const OpQuery&) { return x[0]; }, {});
  op.grad = [](NodeBuilder&, const OpQuery&, std::span<const ir::ValueId>, std::span<const ir::ValueId>) { return Values{ir::ValueId()}; };
  return op;
}

Family one_operand() {
  const auto same = [](Scalars&, Args a, const OpQuery&) { return a[0]; };
  return {
      unary(
          "neg", Domain::numbers, [](Scalars& s, Args a, const OpQuery&) { return s.neg(a[0]); },
          torch_names("neg") + torch_names("negative") + names({"torch.Tensor.__neg__", "numpy.ndarray.__neg__"}) + ufunc1({"negative"})),
      unary(
          "abs", Domain::numbers, [](Scalars& s, Args a, const OpQuery&) { return s.abs(a[0]); },
          torch_names("abs") + torch_names("absolute") + names({"torch.Tensor.__abs__", "numpy.ndarray.__abs__"}) +
              ufunc1({"fabs"},
                     [](ForeignArguments& a) {
                       std::vector<ir::ValueId> x{a.value("self")};
                       a.promote(x, Promotion::common_float);
                       return a.call("abs", x);
                     }) +
              ufunc1({"absolute", "abs"},
                     [](ForeignArguments& a) -> Values {
                       const DType t = a.type(a.value("self")).dtype;
                       return is_bool(t) ? copied(a) : a.call("abs", {a.value("self")});
                     })),
      unary(
          "sign", Domain::any,
          [](Scalars& s, Args a, const OpQuery&) { return is_bool(a[0].dtype) ? a[0] : s.unary(Primitive::sign, a[0]); },
          torch_names("sign") + torch_names("sgn") +
              ufunc1({"sign"},
                     [](ForeignArguments& a) -> Values {
                       const ir::ValueId x = a.value("self");
                       const ir::ValueId sign = a.one("sign", {x});
                       if (!is_float(a.type(x).dtype)) return {sign};
                       return a.call("where", {a.one("isnan", {x}), x, sign});  // NumPy hands nan on
                     })),
      unary(
          "square", Domain::numbers, [](Scalars& s, Args a, const OpQuery&) { return s.mul(a[0], a[0]); },
          torch_names("square") + ufunc1({"square"})),
      unary("clone", Domain::any, same,
            names({"torch.clone", "torch.Tensor.clone"}, "(self, *, memory_format=None)") +
                names({"torch.positive", "torch.Tensor.positive", "torch.Tensor.__pos__", "numpy.ndarray.__pos__"}) + ufunc1({"positive"}) +
                names({"torch.Tensor.contiguous"}, "(self, memory_format=None)", unchanged) + torch_names("detach", "(self)", unchanged) +
                names({"torch.dropout", "torch.feature_dropout", "torch.alpha_dropout", "torch.feature_alpha_dropout"},
                      "(input -> self, p, train -> training)", dropout) +
                names({"numpy.copy"}, "(a -> self, order='K', subok=False)") + names({"numpy.ndarray.copy"}, "(self, order='C')")),
      detach_op(),
      unary_float(
          "reciprocal", [](Scalars& s, Args a, const OpQuery&) { return s.div(s.like(a[0], 1), a[0]); },
          torch_names("reciprocal") + ufunc1({"reciprocal"},
                                             [](ForeignArguments& a) -> Values {
                                               if (!is_float(a.type(a.value("self")).dtype))
                                                 throw Exception(Code::unsupported, "numpy.reciprocal of integers");
                                               return a.call("reciprocal", {a.value("self")});
                                             })),
  };
}

Family combinations() {
  return {
      with_samples(pointwise("lerp", "(Tensor self, Tensor end, Tensor weight) -> Tensor", Domain::floats, Promotion::common, lerp_body,
                             torch_names("lerp")),
                   [] { return pointwise_samples(3, Domain::floats, Fill::unit); }),
      pointwise(
          "addcmul", "(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", Domain::numbers, Promotion::common,
          [](Scalars& s, Args a, const OpQuery& q) {
            const Scalar product = scaled(s, a[1], q);
            return is_float(a[0].dtype) ? s.fma(product, a[2], a[0]) : s.add(a[0], s.mul(product, a[2]));
          },
          torch_names("addcmul", {}, scaled_by_value("addcmul", "mul", Promotion::common))),
      with_samples(
          pointwise(
              "addcdiv", "(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", Domain::floats,
              Promotion::common_float, [](Scalars& s, Args a, const OpQuery& q) { return s.add(a[0], s.div(scaled(s, a[1], q), a[2])); },
              torch_names("addcdiv", {}, scaled_by_value("addcdiv", "div", Promotion::common_float))),
          [] { return pointwise_samples(3, Domain::floats, Fill::nonzero); }),
      pointwise("fma", "(Tensor a, Tensor b, Tensor c) -> Tensor", Domain::floats, Promotion::common,
                [](Scalars& s, Args a, const OpQuery&) { return s.fma(a[0], a[1], a[2]); }, {}),
  };
}

}  // namespace

Family arithmetic_ops() {
  Family all = sums_and_products();
  for (Op& op : one_operand()) all.push_back(std::move(op));
  for (Op& op : combinations()) all.push_back(std::move(op));
  return with_slopes(with_complex_arithmetic(std::move(all)), {{"addcdiv", addcdiv_slope},
                                      {"copysign", copysign_slope},
                                      {"floor_divide", no_slope},
                                      {"fmod", remainder_slope(Primitive::trunc_div)},
                                      {"hypot", hypot_slope},
                                      {"lerp", lerp_slope},
                                      {"reciprocal", reciprocal_slope},
                                      {"remainder", remainder_slope(Primitive::floor_div)},
                                      {"trunc_divide", no_slope}});
}

}  // namespace tenon::ops
