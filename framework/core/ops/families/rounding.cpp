// Rounding, limits, and casts.
#include <cmath>
#include <limits>

#include "core/ops/notation/pointwise.h"

namespace tenon::ops {
namespace {

/// Rounds floats; integers are integral already.
Op rounding(std::string name, Primitive primitive, std::vector<Alias> aliases) {
  return unary(
      std::move(name), Domain::any,
      [primitive](Scalars& s, Args a, const OpQuery&) { return is_float(a[0].dtype) ? s.unary(primitive, a[0]) : a[0]; },
      std::move(aliases));
}

/// ATen's round.decimals: scale, round half to even, scale back.
Scalar round_body(Scalars& s, Args a, const OpQuery& q) {
  const Scalar x = a[0];
  if (!is_float(x.dtype)) return x;
  const std::int64_t decimals = q.constant_integer("decimals", 0);
  if (decimals == 0) return s.unary(Primitive::round, x);
  const Scalar ten = s.like(x, std::pow(10.0, std::abs(static_cast<double>(decimals))));
  if (decimals > 0) return s.div(s.unary(Primitive::round, s.mul(x, ten)), ten);
  return s.mul(s.unary(Primitive::round, s.div(x, ten)), ten);
}

Values round_adapt(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const std::int64_t decimals = a.integer("decimals", 0).constant();
  if (!is_float(a.type(x).dtype) && decimals != 0) throw Exception(Code::unsupported, "round of integers to decimals");
  if (is_bool(a.type(x).dtype)) throw Exception(Code::unsupported, "round of bools");
  return a.call("round", {x}, {{"decimals", ir::Dim(decimals)}});
}

struct Limits {
  double lowest, largest;
};

Limits limits_of(DType t) {
  switch (t) {
    case DType::f16: return {-65504, 65504};
    case DType::bf16: return {-3.3895313892515355e38, 3.3895313892515355e38};
    case DType::f32: return {std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()};
    default: return {std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()};
  }
}

Scalar nan_to_num_body(Scalars& s, Args a, const OpQuery& q) {
  const Scalar x = a[0];
  if (!is_float(x.dtype)) return x;
  const Limits limits = limits_of(q.type(0).dtype);
  const Scalar infinite = s.select(s.eq(x, s.like(x, INFINITY)), s.like(x, q.number("posinf", limits.largest)),
                                   s.select(s.eq(x, s.like(x, -INFINITY)), s.like(x, q.number("neginf", limits.lowest)), x));
  return s.select(s.isnan(x), s.like(x, q.number("nan", 0)), infinite);
}

/// A bound of clamp: nan in either operand gives nan.
Op bound(std::string name, std::string parameter, Primitive primitive) {
  return pointwise(
      name, fmt::format("(Tensor self, Tensor {}) -> Tensor", parameter), Domain::any, Promotion::common,
      [primitive](Scalars& s, Args a, const OpQuery&) { return s.binary(primitive, a[0], a[1]); }, torch_names(name));
}

/// At the bound the gradient is self's.
Slope bound_slope(bool low) {
  return [low](Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) -> std::vector<Scalar> {
    return {value_where(s, low ? s.ge(a[0], a[1]) : s.le(a[0], a[1]), g), value_where(s, low ? s.lt(a[0], a[1]) : s.gt(a[0], a[1]), g)};
  };
}

/// ATen's clamp_backward and clamp_backward_min_max: where the bounds cross, the result is the upper one.
std::vector<Scalar> clamp_slope(Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) {
  const Scalar x = a[0], low = a[1], high = a[2];
  return {value_where(s, s.logical_and(s.ge(x, low), s.le(x, high)), g), value_where(s, s.logical_and(s.lt(low, high), s.lt(x, low)), g),
          value_where(s, s.logical_or(s.gt(x, high), s.lt(high, low)), g)};
}

Values clamp_adapt(ForeignArguments& a) {
  const bool low = a.given("min"), high = a.given("max");
  TENON_USER_CHECK(a.numpy() || !low || !high || a.is_tensor("min") == a.is_tensor("max"), "clamp takes two numbers or two tensors as bounds");
  if (low && high) return a.call("clamp", {a.value("self"), a.value("min"), a.value("max")});
  if (low) return a.call("clamp_min", {a.value("self"), a.value("min")});
  if (high) return a.call("clamp_max", {a.value("self"), a.value("max")});
  TENON_USER_CHECK(a.numpy(), "torch.clamp: At least one of 'min' or 'max' must not be None");
  return a.call("clone", {a.value("self")});
}

/// np.clip takes its bounds by either of two names.
Values numpy_clip(ForeignArguments& a) {
  a.refuse({"out", "dtype"});
  for (const auto& [given, name] : {std::pair("low", "min"), std::pair("high", "max")})
    if (a.given(given)) a.bind(name, a[given]);
  a.bind("self", {a.tensor(a.value("self"))});  // of a number, too, NumPy makes an array first
  return clamp_adapt(a);
}

Values cast_to(ForeignArguments& a, ir::ValueId x, DType dtype) {
  return a.type(x).dtype == dtype ? Values{x} : Values{a.builder().cast(x, dtype)};
}

/// torch.Tensor.to(dtype | other tensor | device, ...): the dtype and the device among the arguments count.
Values to_adapt(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  std::optional<DType> dtype = a.dtype("dtype");
  std::optional<ir::Device> device = a.device();
  if (a["args"].as<ForeignList>())
    for (const ForeignArgument& argument : *a["args"].as<ForeignList>()) {
      if (const DType* t = argument.as<DType>()) dtype = *t;
      if (const ir::ValueId* other = argument.as<ir::ValueId>()) dtype = a.type(*other).dtype, device = a.type(*other).device;
      if (const std::string* name = argument.as<std::string>()) device = a.device_named(*name);
    }
  a.refuse({"memory_format"});
  const ir::ValueId there = a.builder().to_device(cast_to(a, x, dtype.value_or(a.type(x).dtype))[0], device.value_or(a.type(x).device));
  if (a.flag("copy") && a.type(there).device == a.type(x).device) return a.call("clone", {there});
  return {there};
}

Adapt to_dtype(DType dtype) {
  return [dtype](ForeignArguments& a) { return cast_to(a, a.value("self"), dtype); };
}

std::vector<Alias> cast_names() {
  std::vector<Alias> aliases =
      names({"torch.Tensor.to"}, "(self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None)", to_adapt) +
      names({"torch.Tensor.type"}, "(self, dtype=None, non_blocking=False)",
            [](ForeignArguments& a) {
              const auto dtype = a.dtype("dtype");
              if (!dtype) throw Exception(Code::unsupported, "the name of a tensor's type");
              return cast_to(a, a.value("self"), *dtype);
            }) +
      names({"torch.Tensor.type_as"}, "(self, other)",
            [](ForeignArguments& a) {
              const ir::Type self = a.type(a.value("self")), other = a.type(a.value("other"));
              if (self.device != other.device) throw Exception(Code::unsupported, "type_as a tensor of another device");
              return cast_to(a, a.value("self"), other.dtype);
            }) +
      names({"numpy.ndarray.astype"}, "(self, dtype, order='K', casting='unsafe', subok=True, copy=True)",
            [](ForeignArguments& a) -> Values {
              const auto dtype = a.dtype("dtype");
              if (!dtype) throw Exception(Code::unsupported, "astype to a type that Tenon does not know");
              a.refuse({"casting"});
              const bool copies = a.type(a.value("self")).dtype == *dtype && a.flag("copy", true);
              if (copies) return is_complex(*dtype) ? a.call("_to_copy", {a.value("self")}, {{"dtype", *dtype}}) : a.call("clone", {a.value("self")});
              return cast_to(a, a.value("self"), *dtype);
            }) +
      names({"numpy.astype"}, "(x -> self, dtype, *, copy=True, device=None)",
            [](ForeignArguments& a) {
              a.refuse({"device"});
              return cast_to(a, a.value("self"), a.dtype("dtype").value());
            });
  const std::pair<const char*, DType> kWords[] = {
      {"float", DType::f32}, {"double", DType::f64}, {"half", DType::f16}, {"bfloat16", DType::bf16}, {"int", DType::i32},
      {"long", DType::i64},  {"short", DType::i16},  {"char", DType::i8},  {"byte", DType::u8},       {"bool", DType::b8}};
  for (const auto& [word, dtype] : kWords)
    aliases.push_back({std::string("torch.Tensor.") + word, "(self, memory_format=None)", to_dtype(dtype)});
  return aliases;
}

std::vector<Sample> cast_samples() {
  std::vector<Sample> samples;
  const DType all[] = {DType::b8,  DType::u8,  DType::i8,   DType::i16, DType::i32,
                       DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64};
  for (DType from : all)
    for (DType to : all)
      samples.push_back({.name = fmt::format("{}_to_{}", name_of(from), name_of(to)),
                         .operands = {{.dtype = from,
                                       .shape = {5, 9},
                                       .fill = is_float(from) && !is_int(to) ? Fill::special
                                               : to == DType::u8             ? Fill::positive
                                                                             : Fill::normal}},
                         .attributes = {{"dtype", to}}});
  return samples;
}

Op cast_op() {
  Op op = pointwise(
      "_to_copy", "(Tensor self, *, ScalarType dtype) -> Tensor", Domain::any, Promotion::none,
      [](Scalars& s, Args a, const OpQuery& q) { return s.convert(a[0], compute_type(q.dtype("dtype"))); }, cast_names());
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    TENON_USER_CHECK(is_complex(q.dtype("dtype")) || !is_complex(q.type(0).dtype), "complex numbers become complex numbers only");
    return infer::one(q, q.dtype("dtype"), q.type(0).shape);
  };
  op.samples = cast_samples;
  return op;
}

/// The bits of an element read as another dtype of the same size.
Op bit_cast_op() {
  Op op = pointwise("bit_cast", "(Tensor self, *, ScalarType dtype) -> Tensor", Domain::numbers, Promotion::none,
                    [](Scalars& s, Args a, const OpQuery& q) { return s.bit_cast(a[0], q.dtype("dtype")); }, {});
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    const DType from = q.type(0).dtype, to = q.dtype("dtype");
    TENON_USER_CHECK(size_of(from) == size_of(to) && !is_reduced_float(from) && !is_reduced_float(to) && !is_bool(from) && !is_bool(to),
                     "{} cannot be read as {}", name_of(from), name_of(to));
    return infer::one(q, to, q.type(0).shape);
  };
  op.no_grad_reason = "bits have no derivative";
  op.samples = [] {
    std::vector<Sample> all;
    for (const auto& [from, to] : {std::pair{DType::f32, DType::i32}, {DType::f64, DType::i64}, {DType::u8, DType::i8}})
      all.push_back({.name = std::string(name_of(from)), .operands = {{.dtype = from, .shape = {3, 7}}}, .attributes = {{"dtype", to}}});
    return all;
  };
  return op;
}

Op with_attributes(Op op, std::size_t operands, Domain domain, std::vector<ir::Attributes> sets) {
  op.samples = [=] {
    std::vector<Sample> all;
    for (const ir::Attributes& set : sets)
      for (Sample& s : pointwise_samples(operands, domain, Fill::normal, set)) all.push_back(std::move(s));
    return all;
  };
  return op;
}

}  // namespace

Family rounding_ops() {
  Family all = {
      rounding("floor", Primitive::floor, torch_names("floor") + ufunc1({"floor"})),
      rounding("ceil", Primitive::ceil, torch_names("ceil") + ufunc1({"ceil"})),
      rounding("trunc", Primitive::trunc,
               torch_names("trunc") + torch_names("fix") + ufunc1({"trunc"}) + names({"numpy.fix"}, "(x -> self, out=None)")),
      with_attributes(pointwise("round", "(Tensor self, *, int decimals=0) -> Tensor", Domain::any, Promotion::none, round_body,
                                torch_names("round", {}, round_adapt) +
                                    names({"numpy.round", "numpy.around"}, "(a -> self, decimals=0, out=None)", round_adapt) +
                                    names({"numpy.ndarray.round"}, "(self, decimals=0, out=None)", round_adapt) +
                                    names({"torch.Tensor.__round__", "numpy.ndarray.__round__"}, "(self, decimals=0)", round_adapt) +
                                    ufunc1({"rint"},
                                           [](ForeignArguments& a) -> Values {
                                             if (!is_float(a.type(a.value("self")).dtype))
                                               throw Exception(Code::unsupported, "numpy.rint of integers");
                                             return a.call("round", {a.value("self")}, {{"decimals", ir::Dim(0)}});
                                           })),
                      1, Domain::any, {{{"decimals", ir::Dim(0)}}, {{"decimals", ir::Dim(2)}}, {{"decimals", ir::Dim(-1)}}}),
      unary(
          "frac", Domain::floats, [](Scalars& s, Args a, const OpQuery&) { return s.sub(a[0], s.unary(Primitive::trunc, a[0])); },
          torch_names("frac")),
      pointwise(
          "clamp", "(Tensor self, Tensor min, Tensor max) -> Tensor", Domain::any, Promotion::common,
          [](Scalars& s, Args a, const OpQuery&) { return s.minimum(s.maximum(a[0], a[1]), a[2]); },
          torch_names("clamp", "(self, min=None, max=None)", clamp_adapt) + torch_names("clip", "(self, min=None, max=None)", clamp_adapt) +
              names({"numpy.clip"}, "(a -> self, a_min -> min=None, a_max -> max=None, out=None, *, min -> low=None, max -> high=None, dtype=None)",
                    numpy_clip) +
              names({"numpy.ndarray.clip"}, "(self, min=None, max=None, out=None)", clamp_adapt)),
      bound("clamp_min", "min", Primitive::maximum),
      bound("clamp_max", "max", Primitive::minimum),
      with_attributes(
          pointwise("nan_to_num", "(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", Domain::any,
                    Promotion::none, nan_to_num_body,
                    torch_names("nan_to_num") + names({"numpy.nan_to_num"}, "(x -> self, copy=True, nan=0.0, posinf=None, neginf=None)")),
          1, Domain::any, {{}, {{"nan", 1.5}, {"neginf", -2.0}, {"posinf", 3.0}}}),
      cast_op(),
      bit_cast_op(),
  };
  return with_slopes(std::move(all), {{"clamp", clamp_slope}, {"clamp_max", bound_slope(false)}, {"clamp_min", bound_slope(true)}});
}

}  // namespace tenon::ops
