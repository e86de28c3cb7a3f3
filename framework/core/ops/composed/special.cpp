// Functions of numbers in torch's words that are made of several pointwise ops. No op is declared here: the names belong to `cat`.
#include <cmath>
#include <numbers>

#include "core/ops/notation/formula.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using V = ir::ValueId;

Values extremes(ForeignArguments& a) {
  const V x = a.value("self");
  a.container = Container::tuple;
  ir::Attributes over{{"dim", a.given("dim") ? std::vector<Dim>{Dim(a.dim("dim", a.type(x).rank()))} : std::vector<Dim>{}}, {"keepdim", a.flag("keepdim")}};
  return {a.one("amin", {x}, over), a.one("amax", {x}, over)};
}

Values float_power(ForeignArguments& a) {
  Values xy{a.tensor(a.value("self")), a.tensor(a.value("exponent"))};
  for (V& v : xy) v = a.builder().cast(v, DType::f64);
  return a.call("pow", xy);
}

Values always_true(ForeignArguments& a) {
  return {a.builder().full(true, DType::b8, a.type(a.value("self")).shape)};
}

/// x * 2^other. torch takes the gradient of integer powers in integers, where 2 to a negative power is 0.
Values ldexp(ForeignArguments& a) {
  Formula f(a);
  const V x = a.value("self"), power = a.tensor(a.value("other"));
  if (is_float(f.dtype(power))) return {f.mul(x, f.one("exp2", power))};
  const V factor = f.one("exp2", f.cast(power, a.default_float()));
  if (!is_signed_int(f.dtype(power))) return {f.mul(x, factor)};
  return {f.where(f.two("lt", power, f.cast(f.integer(0), f.dtype(power))), f.mul(f.one("detach", x), factor), f.mul(x, factor))};
}

Values glu(ForeignArguments& a) {
  Formula f(a);
  const V x = a.value("self");
  TENON_USER_CHECK(f.rank(x) > 0, "glu does not support 0-dimensional tensors");
  const auto dim = static_cast<std::size_t>(infer::wrap_dim(a.integer("dim", Dim(-1)).constant(), f.rank(x)));
  const Dim size = f.shape(x)[dim];
  TENON_USER_CHECK(infer::is_divisible(size, Dim(2)), "Halving dimension must be even, but dimension {} is size {}", dim, infer::text(a.graph(), size));
  const Dim half = floor_div(size, Dim(2));
  const DType t = f.dtype(x);
  const auto part = [&](const ForeignSlice& slice) { return f.cast(slice_of(a.builder(), x, dim, slice), compute_type(t)); };  // ATen rounds the product alone
  return {f.cast(f.mul(part({{}, half, {}}), f.one("sigmoid", part({half, {}, {}}))), t)};
}

/// The slope of each channel, or one for all.
Values prelu(ForeignArguments& a) {
  Formula f(a);
  const V x = a.value("self");
  V weight = a.value("weight");
  if (f.rank(weight) == 1 && f.rank(x) >= 2) {
    Shape shape(f.rank(x) - 1, Dim(1));
    shape[0] = f.shape(weight)[0];
    weight = reshape_to(a.builder(), weight, shape);
  } else if (f.rank(weight) == 1) {
    weight = reshape_to(a.builder(), weight, {});
  }
  const V positive = f.two("gt", x, f.number(0)), rest = f.where(positive, f.filled(0, f.dtype(x), {}), x);  // an infinite element hands the weight nothing
  return {f.where(positive, x, f.mul(weight, rest))};
}

/// The normal distribution's integral, with ATen's loss of digits far below 0.
Values normal_integral(ForeignArguments& a) {
  Formula f(a);
  V x = a.value("self");
  if (!is_float(f.dtype(x))) x = f.cast(x, a.default_float());
  return {f.mul(f.add(f.number(1), f.one("erf", f.mul(x, f.number(std::numbers::sqrt2 / 2)))), f.number(0.5))};
}

}  // namespace

std::vector<Alias> special_names() {
  return torch_names("aminmax", "(self, *, dim=None, keepdim=False, out=None)", extremes) +
         torch_names("float_power", "(self, exponent, *, out=None)", float_power) +
         torch_names("isreal", "(self)", always_true) +
         torch_names("ldexp", "(self, other, *, out=None)", ldexp) +
         names({"torch.glu"}, "(self, dim=-1)", glu) +
         torch_names("prelu", "(self, weight)", prelu) +
         names({"torch.special.ndtr"}, "(self, *, out=None)", normal_integral);
}

}  // namespace tenon::ops
