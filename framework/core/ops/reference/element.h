// The C++ types of elements, and conversion between them as the primitives define it.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/float16.h"

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

inline float to_float(Half h) { return float_of_half(h.bits); }
inline float to_float(BFloat16 b) { return float_of_bfloat16(b.bits); }

template <class T>
inline constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// What is stored and converted, and never computed with.
template <class T>
inline constexpr bool kIsStorage = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, Bool> || kIsComplex<T>;

/// Truncates as the machine's conversion does: nan and what is out of range give the least value.
template <class Int, class Float>
Int truncate(Float f) {
  constexpr Float bound = static_cast<Float>(static_cast<Float>(1ull << (sizeof(Int) * 8 - 1)));
  return f >= -bound && f < bound ? static_cast<Int>(f) : std::numeric_limits<Int>::min();
}

/// `Primitive::convert` of one value; rounds to storage types.
template <class To, class From>
To convert_element(From x) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>)
    return convert_element<To>(to_float(x));
  else if constexpr (std::is_same_v<From, Bool>)
    return convert_element<To>(static_cast<std::int32_t>(x.byte != 0));
  else if constexpr (std::is_same_v<To, Bool> && kIsComplex<From>)
    return {static_cast<std::uint8_t>(x != From{})};
  else if constexpr (kIsComplex<To> && kIsComplex<From>)
    return To(x);
  else if constexpr (kIsComplex<From>)
    return convert_element<To>(x.real());
  else if constexpr (kIsComplex<To>)
    return To(static_cast<typename To::value_type>(x));
  else if constexpr (std::is_same_v<To, Bool>)
    return {static_cast<std::uint8_t>(x != From{0})};
  else if constexpr (std::is_same_v<To, Half>)
    return {half_of_float(static_cast<float>(x))};
  else if constexpr (std::is_same_v<To, BFloat16>)
    return {bfloat16_of_float(static_cast<float>(x))};
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) == 8)
      return truncate<std::int64_t>(x);
    else
      return static_cast<To>(truncate<std::int32_t>(x));
  } else
    return static_cast<To>(x);
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
    case DType::c64: return f(std::complex<float>{});
    case DType::c128: return f(std::complex<double>{});
    default: break;
  }
  throw Exception(error(Code::unsupported, "the reference computes no {}", name_of(dtype)));
}

}  // namespace tenon::ops::reference
