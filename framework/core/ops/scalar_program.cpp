#include "core/ops/scalar_program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/base/error.h"

namespace tenon::ops {
namespace {

constexpr std::array kNames{
    "constant", "extent", "loop_index", "parameter", "load", "add", "sub", "mul", "div", "floor_div", "trunc_div", "remainder", "fmod",
    "neg", "abs", "sign", "minimum", "maximum", "fma", "floor", "ceil", "trunc", "round", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log",
    "log2", "log10", "log1p", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "erf", "erfc", "lgamma", "eq", "ne", "lt", "le", "gt", "ge", "isnan", "logical_and", "logical_or", "logical_xor",
    "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right", "select", "convert", "bit_cast",
    "complex", "real", "imag"};
static_assert(kNames.size() == static_cast<std::size_t>(Primitive::imag) + 1);

bool gives_bool(Primitive p) { return p >= Primitive::eq && p <= Primitive::logical_not; }

/// The bits of an integer wrapped to the width of `dtype`, sign- or zero-extended to 64 bits.
std::uint64_t integer_bits(DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::b8: return value != 0;
    case DType::u8: return static_cast<std::uint8_t>(value);
    case DType::i8: return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int8_t>(value)));
    case DType::i16: return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int16_t>(value)));
    case DType::i32: return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(value)));
    default: return static_cast<std::uint64_t>(value);
  }
}

}  // namespace

const char* name_of(Primitive p) { return kNames[static_cast<std::size_t>(p)]; }

std::size_t arity(Primitive p) {
  using P = Primitive;
  if (p <= P::load) return 0;
  if (p == P::select || p == P::fma) return 3;
  if (p == P::neg || p == P::abs || p == P::sign || (p >= P::floor && p <= P::lgamma && p != P::pow && p != P::atan2) || p == P::isnan ||
      p == P::logical_not || p == P::bitwise_not || p == P::convert || p == P::bit_cast || p == P::real || p == P::imag)
    return 1;
  return 2;
}

Scalar Scalars::record(const Instruction& instruction) {
  auto& all = program_.instructions;
  const auto same = [&](const Instruction& other) {
    if (instruction.op == Primitive::load) return false;
    return other == instruction;
  };
  auto it = std::find_if(all.begin(), all.end(), same);
  if (it == all.end()) it = all.insert(all.end(), instruction);
  return {static_cast<std::uint32_t>(it - all.begin()), instruction.dtype};
}

namespace {

std::uint64_t constant_bits(DType dtype, double value) {
  return dtype == DType::f64 ? std::bit_cast<std::uint64_t>(value) : std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

}  // namespace

Scalar Scalars::constant(DType dtype, double value) {
  if (is_complex(dtype)) return record({.op = Primitive::constant, .dtype = dtype, .payload = constant_bits(real_type(dtype), value)});
  if (is_float(dtype)) return record({.op = Primitive::constant, .dtype = dtype, .payload = constant_bits(dtype, value)});
  if (dtype == DType::b8) return record({.op = Primitive::constant, .dtype = dtype, .payload = value != 0});
  TENON_USER_CHECK(value >= -9223372036854775808.0 && value < 9223372036854775808.0, "{} does not fit an integer", value);
  return record({.op = Primitive::constant, .dtype = dtype, .payload = integer_bits(dtype, static_cast<std::int64_t>(value))});
}

Scalar Scalars::constant(DType dtype, std::int64_t value) {
  if (is_float(dtype) || is_complex(dtype)) return constant(dtype, static_cast<double>(value));
  return record({.op = Primitive::constant, .dtype = dtype, .payload = integer_bits(dtype, value)});
}

Scalar Scalars::like(Scalar like, double value) { return constant(like.dtype, value); }

Scalar Scalars::extent(const ir::Dim& dim) {
  if (dim.is_constant()) return constant(DType::i64, dim.constant());
  auto& dims = program_.dims;
  auto it = std::find(dims.begin(), dims.end(), dim);
  if (it == dims.end()) it = dims.insert(dims.end(), dim);
  return record({.op = Primitive::extent, .dtype = DType::i64, .payload = static_cast<std::uint64_t>(it - dims.begin())});
}

Scalar Scalars::loop_index(std::size_t loop) { return record({.op = Primitive::loop_index, .dtype = DType::i64, .payload = loop}); }

Scalar Scalars::parameter(std::size_t index, DType dtype) {
  return record({.op = Primitive::parameter, .dtype = dtype, .payload = index});
}

Scalar Scalars::load(std::size_t operand, DType dtype, std::span<const Scalar> indices) {
  Instruction i{.op = Primitive::load, .dtype = compute_type(dtype), .payload = operand};
  i.first_index = static_cast<std::uint32_t>(program_.indices.size());
  i.index_count = static_cast<std::uint32_t>(indices.size());
  for (Scalar s : indices) {
    TENON_CHECK(s.dtype == DType::i64, "an index of a load is {}, not i64", name_of(s.dtype));
    program_.indices.push_back(s.reg);
  }
  return record(i);
}

Scalar Scalars::load_if(Scalar mask, std::size_t operand, DType dtype, std::span<const Scalar> indices, Scalar otherwise) {
  TENON_CHECK(mask.dtype == DType::b8 && otherwise.dtype == compute_type(dtype), "a masked load of {} has mask {} and alternative {}",
              name_of(dtype), name_of(mask.dtype), name_of(otherwise.dtype));
  const Scalar s = load(operand, dtype, indices);
  Instruction& i = program_.instructions[s.reg];
  i.masked = true;
  i.args[0] = mask.reg;
  i.args[1] = otherwise.reg;
  return s;
}

Scalar Scalars::unary(Primitive op, Scalar a) {
  return record({.op = op, .dtype = gives_bool(op) ? DType::b8 : a.dtype, .args = {a.reg}});
}

Scalar Scalars::binary(Primitive op, Scalar a, Scalar b) {
  TENON_CHECK(a.dtype == b.dtype, "{} of {} and {}", name_of(op), name_of(a.dtype), name_of(b.dtype));
  return record({.op = op, .dtype = gives_bool(op) ? DType::b8 : a.dtype, .args = {a.reg, b.reg}});
}

Scalar Scalars::select(Scalar condition, Scalar a, Scalar b) {
  TENON_CHECK(condition.dtype == DType::b8 && a.dtype == b.dtype, "select of {} between {} and {}", name_of(condition.dtype),
              name_of(a.dtype), name_of(b.dtype));
  return record({.op = Primitive::select, .dtype = a.dtype, .args = {condition.reg, a.reg, b.reg}});
}

Scalar Scalars::convert(Scalar a, DType to) {
  return a.dtype == to ? a : record({.op = Primitive::convert, .dtype = to, .args = {a.reg}});
}

Scalar Scalars::bit_cast(Scalar a, DType to) { return record({.op = Primitive::bit_cast, .dtype = to, .args = {a.reg}}); }

Scalar Scalars::fma(Scalar a, Scalar b, Scalar c) {
  return record({.op = Primitive::fma, .dtype = a.dtype, .args = {a.reg, b.reg, c.reg}});
}

Scalar Scalars::complex(Scalar real, Scalar imaginary) {
  TENON_CHECK(real.dtype == imaginary.dtype && (real.dtype == DType::f32 || real.dtype == DType::f64), "no complex number of {} and {}", name_of(real.dtype), name_of(imaginary.dtype));
  return record({.op = Primitive::complex, .dtype = complex_type(real.dtype), .args = {real.reg, imaginary.reg}});
}

Scalar Scalars::real(Scalar a) { return record({.op = Primitive::real, .dtype = real_type(a.dtype), .args = {a.reg}}); }

Scalar Scalars::imag(Scalar a) { return record({.op = Primitive::imag, .dtype = real_type(a.dtype), .args = {a.reg}}); }

}  // namespace tenon::ops
