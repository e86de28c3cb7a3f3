#include "core/ops/notation/pointwise.h"

#include <algorithm>

namespace tenon::ops {
namespace {

bool takes(Domain domain, DType t) {
  switch (domain) {
    case Domain::any: return !is_complex(t);
    case Domain::numbers: return is_int(t) || is_float(t);
    case Domain::floats: return is_float(t);
    case Domain::integers: return is_int(t) || is_bool(t);
  }
  return false;
}

const char* words(Domain domain) {
  switch (domain) {
    case Domain::any: return "bool, integer and float tensors";
    case Domain::numbers: return "integer and float tensors";
    case Domain::floats: return "float tensors";
    case Domain::integers: return "bool and integer tensors";
  }
  return "";
}

void check_literals(const OpQuery& q, DType dtype) {
  for (std::size_t i = 0; i < q.operand_count(); ++i) {
    const ir::Literal* l = q.literal(i);
    TENON_USER_CHECK(!l || !std::holds_alternative<double>(*l) || is_float(dtype),
                     "a float literal with {} operands: cast them to a float dtype first", name_of(dtype));
    TENON_USER_CHECK(!l || !std::holds_alternative<ir::Dim>(*l) || !is_bool(dtype),
                     "an integer literal with bool operands: cast them to an integer dtype first");
  }
}

std::size_t count_operands(std::string_view schema) {
  std::size_t n = 0;
  for (std::size_t at = schema.find("Tensor "); at != std::string_view::npos && at < schema.find("->"); at = schema.find("Tensor ", at + 1))
    ++n;
  return n;
}

}  // namespace

std::function<Result<infer::Types>(const OpQuery&)> infer_pointwise(Domain domain, std::optional<DType> result) {
  return [domain, result](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 8);
    const DType dtype = infer::shared_dtype(q);
    TENON_USER_CHECK(takes(domain, dtype), "takes {}; given {}", words(domain), name_of(dtype));
    check_literals(q, dtype);
    return infer::one(q, result.value_or(dtype), infer::broadcast_operands(q));
  };
}

Op pointwise(std::string name, std::string schema, Domain domain, Promotion promotion, Body body, std::vector<Alias> aliases) {
  Op op;
  op.name = std::move(name);
  op.schema = std::move(schema);
  op.aliases = std::move(aliases);
  op.promotion = promotion;
  op.infer = infer_pointwise(domain);
  op.body = std::move(body);
  op.samples = [n = count_operands(op.schema), domain] { return pointwise_samples(n, domain); };
  return op;
}

Op unary_float(std::string name, Body body, std::vector<Alias> aliases, Fill fill) {
  Op op =
      pointwise(std::move(name), "(Tensor self) -> Tensor", Domain::floats, Promotion::common_float, std::move(body), std::move(aliases));
  op.samples = [fill] { return pointwise_samples(1, Domain::floats, fill); };
  return op;
}

Op unary_float(std::string name, Primitive primitive, std::vector<Alias> aliases, Fill fill) {
  return unary_float(
      std::move(name), [primitive](Scalars& s, Args a, const OpQuery&) { return s.unary(primitive, a[0]); }, std::move(aliases), fill);
}

Op unary(std::string name, Domain domain, Body body, std::vector<Alias> aliases) {
  return pointwise(std::move(name), "(Tensor self) -> Tensor", domain, Promotion::none, std::move(body), std::move(aliases));
}

Op binary(std::string name, Domain domain, Body body, std::vector<Alias> aliases) {
  return pointwise(std::move(name), "(Tensor self, Tensor other) -> Tensor", domain, Promotion::common, std::move(body),
                   std::move(aliases));
}

Op binary_float(std::string name, Body body, std::vector<Alias> aliases) {
  return pointwise(std::move(name), "(Tensor self, Tensor other) -> Tensor", Domain::floats, Promotion::common_float, std::move(body),
                   std::move(aliases));
}

Op gives_bool(Op op) {
  op.infer = [inner = std::move(op.infer)](const OpQuery& q) -> Result<infer::Types> {
    auto types = inner(q);
    if (types) (*types)[0].dtype = DType::b8;
    return types;
  };
  return op;
}

Op with_samples(Op op, std::function<std::vector<Sample>()> samples) {
  op.samples = std::move(samples);
  return op;
}

Op with_slope(Op op, Slope slope) {
  op.slope = std::move(slope);
  return op;
}

Family with_slopes(Family ops, const std::vector<std::pair<std::string_view, Slope>>& slopes) {
  for (const auto& [name, slope] : slopes) {
    const auto op = std::ranges::find(ops, name, &Op::name);
    TENON_CHECK(op != ops.end(), "no op {} to give a slope", name);
    op->slope = slope;
  }
  return ops;
}

Scalar value_where(Scalars& s, Scalar condition, Scalar value) { return s.select(condition, value, s.like(value, 0)); }

Scalar logistic(Scalars& s, Scalar x) {
  const Scalar one = s.like(x, 1), least = s.like(x, x.dtype == DType::f64 ? -700 : -80);
  const Scalar above = s.div(one, s.add(one, s.exp(s.neg(s.maximum(x, least)))));
  return s.select(s.lt(x, least), s.like(x, 0), above);
}

Scalar sign_bit(Scalars& s, Scalar x) {
  const DType bits = x.dtype == DType::f64 ? DType::i64 : DType::i32;
  return s.lt(s.bit_cast(x, bits), s.constant(bits, std::int64_t{0}));
}

Scalar copy_sign(Scalars& s, Scalar a, Scalar b) {
  const Scalar magnitude = s.abs(a);
  return s.select(sign_bit(s, b), s.neg(magnitude), magnitude);
}

std::vector<Sample> pointwise_samples(std::size_t operands, Domain domain, Fill fill, ir::Attributes attributes) {
  std::vector<Sample> samples;
  const auto add = [&](std::string name, DType dtype, std::vector<std::vector<std::int64_t>> shapes, Fill how) {
    Sample sample{.name = std::move(name), .attributes = attributes};
    for (std::size_t i = 0; i < operands; ++i) sample.operands.push_back({.dtype = dtype, .shape = shapes[i % shapes.size()], .fill = how});
    samples.push_back(std::move(sample));
  };
  for (DType t : {DType::b8, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    if (!takes(domain, t)) continue;
    add(std::string(name_of(t)), t, {{3, 17}}, fill);
    if (t == DType::f32 || t == DType::f64) add(fmt::format("special_{}", name_of(t)), t, {{6, 11}}, Fill::special);
  }
  const DType t = takes(domain, DType::f32) ? DType::f32 : DType::i32;
  add("long", t, {{1037}}, fill);
  add("scalar", t, {{}}, fill);
  add("zero_size", t, {{0, 3}}, fill);
  if (operands > 1) {
    add("broadcast_row", t, {{4, 5}, {5}}, fill);
    add("broadcast_both", t, {{4, 1, 3}, {1, 2, 1}}, fill);
    add("broadcast_scalar", t, {{2, 3}, {}}, fill);
    add("broadcast_zero", t, {{0, 3}, {1, 3}}, fill);
  }
  add("strided", t, {{4, 5}}, fill);
  samples.back().operands[0].strides = {{1, 4}};
  add("reversed", t, {{4, 5}}, fill);
  samples.back().operands[0].strides = {{-5, -1}};
  add("gaps", t, {{3, 4}}, fill);
  samples.back().operands.back().strides = {{24, 3}};
  add("expanded", t, {{3, 4}}, fill);
  samples.back().operands.back().strides = {{0, 1}};
  return samples;
}

}  // namespace tenon::ops
