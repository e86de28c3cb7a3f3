// Choosing between values element by element, and numbers that are given under a condition alone.
#include "core/ops/notation/pointwise.h"

namespace tenon::ops {

using ir::Dim;
using ir::Shape;

namespace {

Result<infer::Types> infer_where(const OpQuery& q) {
  infer::require_operands(q, 3, 3);
  TENON_USER_CHECK(!q.literal(0), "the condition must be a tensor, not a number: make one with full");
  TENON_USER_CHECK(is_bool(q.type(0).dtype), "the condition must be bool, not {}", name_of(q.type(0).dtype));
  const DType dtype = infer::shared_dtype(q, 1);
  return infer::one(q, dtype, infer::broadcast_operands(q));
}

std::vector<Sample> where_samples() {
  std::vector<Sample> samples = pointwise_samples(3, Domain::any);
  for (Sample& s : samples) {
    s.operands[0].dtype = DType::b8;
    s.operands[0].fill = Fill::normal;
  }
  return samples;
}

/// torch: a literal beside a literal has the default dtype of its kind; NumPy: where(c, 1.0, 2) is float64.
Values where_adapt(ForeignArguments& a) {
  if (!a.given("self") && !a.given("other")) return nonzero_as_tuple(a, a.tensor(a.value("condition")));
  std::vector<ir::ValueId> ab{a.value("self"), a.value("other")};
  const auto literal = [&](ir::ValueId v) { return a.graph().value(v).kind == ir::ValueKind::literal; };
  if (literal(ab[0]) && literal(ab[1])) {
    const DType t = a.promoted(ab, Promotion::common);
    ab[0] = a.builder().cast(a.tensor(ab[0]), t);
  }
  a.promote(ab, Promotion::common);
  ir::ValueId condition = a.tensor(a.value("condition"));
  const DType given = a.type(condition).dtype;
  if (!is_bool(given)) {
    if (!a.numpy() && given == DType::u8) throw Exception(Code::unsupported, "a condition of bytes, of which torch warns");
    TENON_USER_CHECK(a.numpy(), "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
                     name_of(given));
    condition = a.builder().cast(condition, DType::b8);
  }
  return a.call("where", {condition, ab[0], ab[1]});
}

/// The value takes self's dtype, as in ATen.
Values masked_fill_adapt(ForeignArguments& a) {
  const ir::ValueId self = a.value("self");
  ir::ValueId value = a.value("value");
  const DType dtype = a.type(self).dtype;
  const ir::Value& v = a.graph().value(value);
  TENON_USER_CHECK(a.type(value).rank() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                   a.type(value).rank());
  if (v.kind != ir::ValueKind::literal)
    value = a.builder().cast(value, dtype);
  else if (std::holds_alternative<double>(v.literal) && !is_float(dtype))
    throw Exception(error(Code::invalid_argument, "value cannot be converted to type {} without overflow", name_of(dtype)));
  if (is_int(dtype)) a.require_represented(value, dtype);
  const ir::ValueId mask = a.value("mask");
  TENON_USER_CHECK(is_bool(a.type(mask).dtype), "masked_fill only supports boolean masks, but got mask with dtype {}",
                   name_of(a.type(mask).dtype));
  return a.call("where", {mask, value, self});
}

/// numpy.fmax and numpy.fmin: of two equal floats NumPy's vector instructions take the second, where torch takes the first.
Adapt second_of_equals(std::string op) {
  return [op](ForeignArguments& a) {
    Values xy{a.value("self"), a.value("other")};
    DType t = a.promoted(xy, Promotion::common);
    if (a.given("dtype")) t = *a.dtype("dtype");
    for (ir::ValueId& v : xy)
      if (a.graph().value(v).kind != ir::ValueKind::literal) v = a.builder().cast(v, t);
    if (t == DType::f32 || t == DType::f64) std::swap(xy[0], xy[1]);
    return a.call(op, xy);
  };
}

/// The number of two where one is NaN, else what `choose` takes; the gradient of equals is the first one's.
Op past_nan(const std::string& name, Scalar (Scalars::*choose)(Scalar, Scalar), Scalar (Scalars::*first)(Scalar, Scalar)) {
  Op op = binary(
      name, Domain::any,
      [choose](Scalars& s, Args a, const OpQuery&) {
        if (!is_float(a[0].dtype)) return (s.*choose)(a[0], a[1]);
        return s.select(s.isnan(a[0]), a[1], s.select(s.isnan(a[1]), a[0], (s.*choose)(a[1], a[0])));
      },
      torch_names(name) + ufunc2({name}, second_of_equals(name)));
  return with_slope(std::move(op), [first](Scalars& s, Args a, Scalar, Scalar g, const OpQuery&) -> std::vector<Scalar> {
    const Scalar mine = s.logical_or((s.*first)(a[0], a[1]), s.isnan(a[1]));
    return {value_where(s, mine, g), value_where(s, s.logical_not(mine), g)};
  });
}

/// The number itself where the condition holds; elsewhere the call fails, as with an index out of range.
Op checked() {
  Op op;
  op.name = "checked";
  op.schema = "(Tensor self, Tensor condition) -> Tensor";
  op.traits.may_raise = true;
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 2, 2);
    TENON_USER_CHECK(q.type(0).rank() == 0 && q.type(1).rank() == 0, "a number and its condition have no dimensions, but these have {} and {}", q.type(0).rank(), q.type(1).rank());
    TENON_USER_CHECK(is_bool(q.type(1).dtype), "the condition must be bool, not {}", name_of(q.type(1).dtype));
    return infer::one(q, q.type(0).dtype, {});
  };
  op.decompose = [](NodeBuilder& b, const OpQuery& q) -> Values {
    const ir::ValueId two = b.one("expand", {q.operands()[0]}, {{"size", Shape{Dim(2)}}});  // an index into a single element would not be looked at
    const ir::ValueId place = b.one("sub", {b.cast(q.operands()[1], DType::i64), b.literal(Dim(3))});  // from the end: the first, or one before it
    return {b.one("index", {two, place}, {{"dims", std::vector<Dim>{0}}})};  // the last node: what may fail is computed where nobody reads it
  };
  op.grad = [](NodeBuilder&, const OpQuery&, std::span<const ir::ValueId>, std::span<const ir::ValueId> given) -> Values { return {given[0], {}}; };
  op.samples = [] {
    std::vector<Sample> samples;
    for (const DType dtype : {DType::f64, DType::f32, DType::i64, DType::b8})
      samples.push_back({.name = std::string(name_of(dtype)), .operands = {{.dtype = dtype}, {.dtype = DType::b8, .fill = Fill::positive}}});
    return samples;
  };
  return op;
}

}  // namespace

Family choice_ops() {
  Op where = pointwise(
      "where", "(Tensor condition, Tensor self, Tensor other) -> Tensor", Domain::any, Promotion::none,
      [](Scalars& s, Args a, const OpQuery&) { return s.select(a[0], a[1], a[2]); },
      names({"torch.where", "numpy.where"}, "(condition, x -> self = None, y -> other = None)", where_adapt) +
          names({"torch.Tensor.where"}, "(self, condition, other)", where_adapt) +
          names({"torch.masked_fill", "torch.Tensor.masked_fill"}, "(self, mask, value)", masked_fill_adapt));
  where.infer = infer_where;
  where.samples = where_samples;
  return {std::move(where), past_nan("fmax", &Scalars::maximum, &Scalars::ge), past_nan("fmin", &Scalars::minimum, &Scalars::le), checked()};
}

}  // namespace tenon::ops
