// Comparisons, logic of bools, bits of integers.
#include <cmath>

#include "core/ops/notation/complex_parts.h"
#include "core/ops/notation/pointwise.h"

namespace tenon::ops {
namespace {

/// Aliases of a comparison and its operator methods (Python tries the mirrored method itself).
std::vector<Alias> comparison_names(std::string_view torch_short, std::string_view torch_long, std::string_view numpy_name) {
  const std::string method = fmt::format("__{}__", torch_short);
  return torch_names(torch_short) + torch_names(torch_long) + ufunc2({numpy_name}) +
         names({"torch.Tensor." + method, "numpy.ndarray." + method}, "(self, other)");
}

Op comparison(std::string name, Primitive primitive, std::vector<Alias> aliases) {
  return gives_bool(binary(
      std::move(name), Domain::any, [primitive](Scalars& s, Args a, const OpQuery&) { return s.binary(primitive, a[0], a[1]); },
      std::move(aliases)));
}

Scalar truth(Scalars& s, Scalar a) { return s.convert(a, DType::b8); }

Op logical(std::string name, Primitive primitive) {
  std::vector<Alias> aliases = torch_names(name) + ufunc2({name});
  return gives_bool(binary(
      std::move(name), Domain::any,
      [primitive](Scalars& s, Args a, const OpQuery&) { return s.binary(primitive, truth(s, a[0]), truth(s, a[1])); }, std::move(aliases)));
}

Op bitwise(std::string name, Primitive bits, Primitive bools, std::string_view word) {
  std::vector<Alias> aliases = torch_names(name) + ufunc2({name});
  for (const char* type : {"torch.Tensor", "numpy.ndarray"}) {
    aliases.push_back({fmt::format("{}.__{}__", type, word), "(self, other)", {}});
    aliases.push_back({fmt::format("{}.__r{}__", type, word), "(self -> other, other -> self)", {}});
  }
  return binary(
      std::move(name), Domain::integers,
      [=](Scalars& s, Args a, const OpQuery&) { return s.binary(is_bool(a[0].dtype) ? bools : bits, a[0], a[1]); }, std::move(aliases));
}

Op shift(std::string name, Primitive primitive, std::vector<Alias> aliases) {
  Op op = binary(
      std::move(name), Domain::integers, [primitive](Scalars& s, Args a, const OpQuery&) { return s.binary(primitive, a[0], a[1]); },
      std::move(aliases));
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    const DType dtype = infer::shared_dtype(q);
    TENON_USER_CHECK(is_int(dtype), "takes integer tensors; given {}", name_of(dtype));
    return infer::one(q, dtype, infer::broadcast_operands(q));
  };
  op.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64})
      samples.push_back({.name = std::string(name_of(t)),
                         .operands = {{.dtype = t, .shape = {3, 17}}, {.dtype = t, .shape = {17}, .fill = Fill::index, .bound = 8}}});
    return samples;
  };
  return op;
}

std::vector<Alias> shift_names(std::string_view name, std::string_view word, std::string_view numpy_name) {
  std::vector<Alias> aliases = torch_names(name) + ufunc2({numpy_name});
  for (const char* type : {"torch.Tensor", "numpy.ndarray"}) {
    aliases.push_back({fmt::format("{}.__{}__", type, word), "(self, other)", {}});
    aliases.push_back({fmt::format("{}.__r{}__", type, word), "(self -> other, other -> self)", {}});
  }
  return aliases;
}

/// A question about floats; integers and bools answer `otherwise`.
Op question(std::string name, std::function<Scalar(Scalars&, Scalar)> ask, bool otherwise, std::vector<Alias> aliases) {
  return gives_bool(unary(
      std::move(name), Domain::any,
      [ask, otherwise](Scalars& s, Args a, const OpQuery&) {
        return is_float(a[0].dtype) ? ask(s, a[0]) : s.constant(DType::b8, std::int64_t{otherwise});
      },
      std::move(aliases)));
}

Family questions() {
  return {
      question(
          "isnan", [](Scalars& s, Scalar x) { return s.isnan(x); }, false, torch_names("isnan") + ufunc1({"isnan"})),
      question(
          "isinf", [](Scalars& s, Scalar x) { return s.eq(s.abs(x), s.like(x, INFINITY)); }, false,
          torch_names("isinf") + ufunc1({"isinf"})),
      question(
          "isfinite", [](Scalars& s, Scalar x) { return s.lt(s.abs(x), s.like(x, INFINITY)); }, true,
          torch_names("isfinite") + ufunc1({"isfinite"})),
      question(
          "isposinf", [](Scalars& s, Scalar x) { return s.eq(x, s.like(x, INFINITY)); }, false,
          torch_names("isposinf") + names({"numpy.isposinf"}, "(x -> self, out=None)")),
      question(
          "isneginf", [](Scalars& s, Scalar x) { return s.eq(x, s.like(x, -INFINITY)); }, false,
          torch_names("isneginf") + names({"numpy.isneginf"}, "(x -> self, out=None)")),
      gives_bool(unary(
          "signbit", Domain::any,
          [](Scalars& s, Args a, const OpQuery&) {
            if (is_float(a[0].dtype)) return sign_bit(s, a[0]);
            return is_bool(a[0].dtype) ? s.constant(DType::b8, std::int64_t{0}) : s.lt(a[0], s.like(a[0], 0));
          },
          torch_names("signbit") + ufunc1({"signbit"}))),
  };
}

Scalar close_body(Scalars& s, Args a, const OpQuery& q) {
  const Scalar x = a[0], y = a[1];
  const Scalar bound = s.add(s.like(x, q.number("atol", 1e-8)), s.abs(s.mul(s.like(x, q.number("rtol", 1e-5)), y)));
  const Scalar near = s.logical_and(s.lt(s.abs(y), s.like(y, INFINITY)), s.le(s.abs(s.sub(x, y)), bound));
  const Scalar close = s.logical_or(s.eq(x, y), near);
  return q.flag("equal_nan") ? s.logical_or(close, s.logical_and(s.isnan(x), s.isnan(y))) : close;
}

/// torch wants tolerances that are not negative.
Values torch_isclose(ForeignArguments& a) {
  const double rtol = a.number("rtol", 1e-5), atol = a.number("atol", 1e-8);
  TENON_USER_CHECK(rtol >= 0, "rtol must be greater than or equal to zero, but got {}", rtol);
  TENON_USER_CHECK(atol >= 0, "atol must be greater than or equal to zero, but got {}", atol);
  return a.call("isclose", {a.value("self"), a.value("other")}, {{"atol", atol}, {"equal_nan", a.flag("equal_nan")}, {"rtol", rtol}});
}

/// An answer about complex numbers from the answers about their parts.
Op of_both_parts(Op op, std::string combine) {
  const auto ask = [name = op.name, combine](ComplexFormula& f, std::span<const Parts> z, const OpQuery&, Flavour) {
    if (z.size() == 1) return f.two(combine, f.one(name, z[0].real), f.one(name, z[0].imaginary));
    return f.two(combine, f.two(name, z[0].real, z[1].real), f.two(name, z[0].imaginary, z[1].imaginary));
  };
  return with_value_of_complex(std::move(op), ask);
}

}  // namespace

Family comparison_ops() {
  Family all = {
      of_both_parts(comparison("eq", Primitive::eq, comparison_names("eq", "eq", "equal")), "logical_and"),
      of_both_parts(comparison("ne", Primitive::ne, comparison_names("ne", "not_equal", "not_equal")), "logical_or"),
      comparison("lt", Primitive::lt, comparison_names("lt", "less", "less")),
      comparison("le", Primitive::le, comparison_names("le", "less_equal", "less_equal")),
      comparison("gt", Primitive::gt, comparison_names("gt", "greater", "greater")),
      comparison("ge", Primitive::ge, comparison_names("ge", "greater_equal", "greater_equal")),
      logical("logical_and", Primitive::logical_and),
      logical("logical_or", Primitive::logical_or),
      logical("logical_xor", Primitive::logical_xor),
      gives_bool(unary(
          "logical_not", Domain::any, [](Scalars& s, Args a, const OpQuery&) { return s.logical_not(truth(s, a[0])); },
          torch_names("logical_not") + ufunc1({"logical_not"}))),
      bitwise("bitwise_and", Primitive::bitwise_and, Primitive::logical_and, "and"),
      bitwise("bitwise_or", Primitive::bitwise_or, Primitive::logical_or, "or"),
      bitwise("bitwise_xor", Primitive::bitwise_xor, Primitive::logical_xor, "xor"),
      unary(
          "bitwise_not", Domain::integers,
          [](Scalars& s, Args a, const OpQuery&) {
            return s.unary(is_bool(a[0].dtype) ? Primitive::logical_not : Primitive::bitwise_not, a[0]);
          },
          torch_names("bitwise_not") + names({"torch.Tensor.__invert__", "numpy.ndarray.__invert__"}) +
              ufunc1({"bitwise_not", "invert", "bitwise_invert"})),
      shift("shift_left", Primitive::shift_left, shift_names("bitwise_left_shift", "lshift", "left_shift")),
      shift("shift_right", Primitive::shift_right, shift_names("bitwise_right_shift", "rshift", "right_shift")),
      gives_bool(
          pointwise("isclose", "(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
                    Domain::floats, Promotion::common_float, close_body,
                    torch_names("isclose", "(self, other, rtol=1e-05, atol=1e-08, equal_nan=False)", torch_isclose) + names({"numpy.isclose"}, "(a -> self, b -> other, rtol=1e-05, atol=1e-08, equal_nan=False)"))),
  };
  for (Op& op : questions()) all.push_back(std::move(op));
  return all;
}

}  // namespace tenon::ops
