// The C++ types of elements, and conversion between them as the primitives define it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/dtype.h"
#include "core/base/error.h"

namespace tenon::ops::reference {

struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};
struct Bool {
  std::uint8_t byte;
};

/// IEEE 754 binary16 to binary32.
inline float to_float(Half h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16, exponent = (h.bits >> 10) & 31u, mantissa = h.bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

inline float to_float(BFloat16 b) { return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16); }

/// binary32 to binary16, to nearest even, overflowing to infinity.
inline Half to_half(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {  // subnormal: the addition rounds
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u))};
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

/// binary32 to bfloat16, to nearest even.
inline BFloat16 to_bfloat16(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  if (f != f) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

template <class T>
inline constexpr bool kIsStorage = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, Bool>;

/// Truncates as the machine's conversion does: nan and what is out of range give the least value.
template <class Int, class Float>
Int truncate(Float f) {
  constexpr Float bound = static_cast<Float>(static_cast<Float>(1ull << (sizeof(Int) * 8 - 1)));
  return f >= -bound && f < bound ? static_cast<Int>(f) : std::numeric_limits<Int>::min();
}

/// `Primitive::convert` of one value; rounds to storage types.
template <class To, class From>
To convert_element(From x) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) return convert_element<To>(to_float(x));
  else if constexpr (std::is_same_v<From, Bool>) return convert_element<To>(static_cast<std::int32_t>(x.byte != 0));
  else if constexpr (std::is_same_v<To, Bool>) return {static_cast<std::uint8_t>(x != From{0})};
  else if constexpr (std::is_same_v<To, Half>) return to_half(static_cast<float>(x));
  else if constexpr (std::is_same_v<To, BFloat16>) return to_bfloat16(static_cast<float>(x));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) == 8) return truncate<std::int64_t>(x);
    else return static_cast<To>(truncate<std::int32_t>(x));
  } else return static_cast<To>(x);
}

/// Calls `f` with a value of the dtype's C++ type.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::b8: return f(Bool{});
    case DType::u8: return f(std::uint8_t{});
    case DType::i8: return f(std::int8_t{});
    case DType::i16: return f(std::int16_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::f16: return f(Half{});
    case DType::bf16: return f(BFloat16{});
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    default: break;
  }
  throw Exception(error(Code::unsupported, "the reference computes no {}", name_of(dtype)));
}

}  // namespace tenon::ops::reference
