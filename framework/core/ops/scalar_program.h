// Scalar arithmetic written once and run everywhere: the bodies of ops as small straight-line programs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/dtype.h"
#include "core/ir/dim.h"

namespace tenon::ops {

/// The scalar primitives. Arithmetic takes operands of one dtype and gives that dtype; comparisons give bool. Integers wrap.
/// Each primitive of tensors' arithmetic is also an op of the catalogue with the same name, so that a body can become nodes.
enum class Primitive : std::uint8_t {
  // leaves
  constant,      // payload: the bits of a value of the instruction's dtype; of a complex one its real part, the imaginary part being 0
  extent,        // payload: index into ScalarProgram::dims; i64
  loop_index,    // payload: which loop; i64
  parameter,     // payload: which parameter (reducers and pointwise bodies)
  load,          // payload: which operand; arguments: one i64 index a dimension; optional mask and alternative value
  // arithmetic
  add, sub, mul, div,        // div is of floats
  floor_div, trunc_div, remainder,  // integers and floats; remainder has the sign of the divisor (Python, torch); integer division by 0 gives 0, MIN / -1 wraps
  fmod,                      // has the sign of the dividend (C)
  neg, abs, sign, minimum, maximum,  // sign of NaN is 0; minimum, maximum hand NaN on
  fma,
  // rounding
  floor, ceil, trunc, round,  // round: half to even
  // exponential and trigonometric functions, of floats
  sqrt, rsqrt, exp, exp2, expm1, log, log2, log10, log1p, pow,  // pow of integers wraps; a negative exponent gives 1/x truncated
  sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, asinh, acosh, atanh, erf, erfc, lgamma,
  // comparison (bool)
  eq, ne, lt, le, gt, ge, isnan,
  // logic of bools, bits of integers
  logical_and, logical_or, logical_xor, logical_not,
  bitwise_and, bitwise_or, bitwise_xor, bitwise_not,
  shift_left, shift_right,  // by the width or more, or by a negative count: 0, or the sign's fill
  // choice and conversion
  select,        // (bool, a, b)
  convert,       // to the instruction's dtype; integers wrap; to bool: != 0. Float to i64 truncates, NaN and out of range give the least i64;
                 // float to narrower integers goes through i32 in the same way, then wraps
  bit_cast,
  // complex numbers, which have no other arithmetic: everything else is computed of their parts
  complex,       // (real part, imaginary part), of the instruction's real type
  real, imag,    // of a complex number: its parts
};

const char* name_of(Primitive p);

/// The number of registers that an arithmetic primitive reads; 0 of leaves.
std::size_t arity(Primitive p);

/// A value in a program under construction: a register and its dtype.
struct Scalar {
  std::uint32_t reg = 0xffffffffu;
  DType dtype = DType::f32;
};

struct Instruction {
  Primitive op = Primitive::constant;
  DType dtype = DType::f32;           // of the result
  std::uint64_t payload = 0;
  std::uint32_t args[3] = {0, 0, 0};  // registers; unused ones are 0
  std::uint32_t first_index = 0;      // load: position of its indices in ScalarProgram::indices
  std::uint32_t index_count = 0;      // load
  bool masked = false;                // load: args[0] is the mask (bool), args[1] the value where the mask is false
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// A straight-line program in SSA form: register i is the result of instruction i.
struct ScalarProgram {
  std::vector<Instruction> instructions = {};
  std::vector<std::uint32_t> indices = {};  // registers that index loads
  std::vector<ir::Dim> dims;           // for `extent`
  std::vector<std::uint32_t> results = {};  // registers
};

/// Records a ScalarProgram. Equal instructions are recorded once; constants are folded by nobody here.
class Scalars {
 public:
  /// A constant of `dtype`, rounded or truncated from the given number as torch's `full` does.
  Scalar constant(DType dtype, double value);
  Scalar constant(DType dtype, std::int64_t value);
  /// A constant with the dtype of `like`.
  Scalar like(Scalar like, double value);
  Scalar extent(const ir::Dim& dim);
  Scalar loop_index(std::size_t loop);
  Scalar parameter(std::size_t index, DType dtype);
  Scalar load(std::size_t operand, DType dtype, std::span<const Scalar> indices);
  /// Loads where `mask` holds, else gives `otherwise`; memory is not touched where the mask is false.
  Scalar load_if(Scalar mask, std::size_t operand, DType dtype, std::span<const Scalar> indices, Scalar otherwise);

  Scalar unary(Primitive op, Scalar a);
  Scalar binary(Primitive op, Scalar a, Scalar b);
  Scalar select(Scalar condition, Scalar a, Scalar b);
  Scalar convert(Scalar a, DType to);
  Scalar bit_cast(Scalar a, DType to);
  Scalar fma(Scalar a, Scalar b, Scalar c);
  /// The complex number of two floats of one dtype; the parts of a complex number.
  Scalar complex(Scalar real, Scalar imaginary);
  Scalar real(Scalar a);
  Scalar imag(Scalar a);

  Scalar add(Scalar a, Scalar b) { return binary(Primitive::add, a, b); }
  Scalar sub(Scalar a, Scalar b) { return binary(Primitive::sub, a, b); }
  Scalar mul(Scalar a, Scalar b) { return binary(Primitive::mul, a, b); }
  Scalar div(Scalar a, Scalar b) { return binary(Primitive::div, a, b); }
  Scalar neg(Scalar a) { return unary(Primitive::neg, a); }
  Scalar abs(Scalar a) { return unary(Primitive::abs, a); }
  Scalar exp(Scalar a) { return unary(Primitive::exp, a); }
  Scalar log(Scalar a) { return unary(Primitive::log, a); }
  Scalar tanh(Scalar a) { return unary(Primitive::tanh, a); }
  Scalar sqrt(Scalar a) { return unary(Primitive::sqrt, a); }
  Scalar lt(Scalar a, Scalar b) { return binary(Primitive::lt, a, b); }
  Scalar le(Scalar a, Scalar b) { return binary(Primitive::le, a, b); }
  Scalar gt(Scalar a, Scalar b) { return binary(Primitive::gt, a, b); }
  Scalar ge(Scalar a, Scalar b) { return binary(Primitive::ge, a, b); }
  Scalar minimum(Scalar a, Scalar b) { return binary(Primitive::minimum, a, b); }
  Scalar maximum(Scalar a, Scalar b) { return binary(Primitive::maximum, a, b); }
  Scalar isnan(Scalar a) { return unary(Primitive::isnan, a); }
  Scalar eq(Scalar a, Scalar b) { return binary(Primitive::eq, a, b); }
  Scalar logical_and(Scalar a, Scalar b) { return binary(Primitive::logical_and, a, b); }
  Scalar logical_or(Scalar a, Scalar b) { return binary(Primitive::logical_or, a, b); }
  Scalar logical_not(Scalar a) { return unary(Primitive::logical_not, a); }

  void result(Scalar s) { program_.results.push_back(s.reg); }
  ScalarProgram take() { return std::move(program_); }

 private:
  Scalar record(const Instruction& instruction);
  ScalarProgram program_;
};

}  // namespace tenon::ops
