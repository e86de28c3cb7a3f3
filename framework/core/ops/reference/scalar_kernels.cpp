#include "core/ops/reference/scalar_kernels.h"

#include <cmath>
#include <cstring>

#include "core/ops/reference/element.h"

namespace tenon::ops::reference {
namespace {

template <class R, class A, class F>
void each(void* result, const void* a, std::size_t n, F f) {
  auto* r = static_cast<R*>(result);
  const auto* x = static_cast<const A*>(a);
  for (std::size_t i = 0; i < n; ++i) r[i] = static_cast<R>(f(x[i]));
}

template <class R, class A, class F>
void each(void* result, const void* a, const void* b, std::size_t n, F f) {
  auto* r = static_cast<R*>(result);
  const auto* x = static_cast<const A*>(a);
  const auto* y = static_cast<const A*>(b);
  for (std::size_t i = 0; i < n; ++i) r[i] = static_cast<R>(f(x[i], y[i]));
}

template <class T>
bool float_unary(Primitive p, const void* a, void* r, std::size_t n) {
  switch (p) {
    case Primitive::floor: each<T, T>(r, a, n, [](T x) { return std::floor(x); }); return true;
    case Primitive::ceil: each<T, T>(r, a, n, [](T x) { return std::ceil(x); }); return true;
    case Primitive::trunc: each<T, T>(r, a, n, [](T x) { return std::trunc(x); }); return true;
    case Primitive::round: each<T, T>(r, a, n, [](T x) { return std::nearbyint(x); }); return true;
    case Primitive::sqrt: each<T, T>(r, a, n, [](T x) { return std::sqrt(x); }); return true;
    case Primitive::rsqrt: each<T, T>(r, a, n, [](T x) { return T{1} / std::sqrt(x); }); return true;
    case Primitive::exp: each<T, T>(r, a, n, [](T x) { return std::exp(x); }); return true;
    case Primitive::exp2: each<T, T>(r, a, n, [](T x) { return std::exp2(x); }); return true;
    case Primitive::expm1: each<T, T>(r, a, n, [](T x) { return std::expm1(x); }); return true;
    case Primitive::log: each<T, T>(r, a, n, [](T x) { return std::log(x); }); return true;
    case Primitive::log2: each<T, T>(r, a, n, [](T x) { return std::log2(x); }); return true;
    case Primitive::log10: each<T, T>(r, a, n, [](T x) { return std::log10(x); }); return true;
    case Primitive::log1p: each<T, T>(r, a, n, [](T x) { return std::log1p(x); }); return true;
    case Primitive::sin: each<T, T>(r, a, n, [](T x) { return std::sin(x); }); return true;
    case Primitive::cos: each<T, T>(r, a, n, [](T x) { return std::cos(x); }); return true;
    case Primitive::tan: each<T, T>(r, a, n, [](T x) { return std::tan(x); }); return true;
    case Primitive::asin: each<T, T>(r, a, n, [](T x) { return std::asin(x); }); return true;
    case Primitive::acos: each<T, T>(r, a, n, [](T x) { return std::acos(x); }); return true;
    case Primitive::atan: each<T, T>(r, a, n, [](T x) { return std::atan(x); }); return true;
    case Primitive::sinh: each<T, T>(r, a, n, [](T x) { return std::sinh(x); }); return true;
    case Primitive::cosh: each<T, T>(r, a, n, [](T x) { return std::cosh(x); }); return true;
    case Primitive::tanh: each<T, T>(r, a, n, [](T x) { return std::tanh(x); }); return true;
    case Primitive::asinh: each<T, T>(r, a, n, [](T x) { return std::asinh(x); }); return true;
    case Primitive::acosh: each<T, T>(r, a, n, [](T x) { return std::acosh(x); }); return true;
    case Primitive::atanh: each<T, T>(r, a, n, [](T x) { return std::atanh(x); }); return true;
    case Primitive::erf: each<T, T>(r, a, n, [](T x) { return std::erf(x); }); return true;
    case Primitive::erfc: each<T, T>(r, a, n, [](T x) { return std::erfc(x); }); return true;
    case Primitive::lgamma: each<T, T>(r, a, n, [](T x) { return std::lgamma(x); }); return true;
    case Primitive::isnan: each<std::uint8_t, T>(r, a, n, [](T x) { return x != x; }); return true;
    case Primitive::neg: each<T, T>(r, a, n, [](T x) { return -x; }); return true;
    case Primitive::abs: each<T, T>(r, a, n, [](T x) { return std::fabs(x); }); return true;
    default: return false;
  }
}

template <class T>
bool float_binary(Primitive p, const void* a, const void* b, void* r, std::size_t n) {
  switch (p) {
    case Primitive::add: each<T, T>(r, a, b, n, [](T x, T y) { return x + y; }); return true;
    case Primitive::sub: each<T, T>(r, a, b, n, [](T x, T y) { return x - y; }); return true;
    case Primitive::mul: each<T, T>(r, a, b, n, [](T x, T y) { return x * y; }); return true;
    case Primitive::div: each<T, T>(r, a, b, n, [](T x, T y) { return x / y; }); return true;
    case Primitive::floor_div: each<T, T>(r, a, b, n, [](T x, T y) { return std::floor(x / y); }); return true;
    case Primitive::trunc_div: each<T, T>(r, a, b, n, [](T x, T y) { return std::trunc(x / y); }); return true;
    case Primitive::fmod: each<T, T>(r, a, b, n, [](T x, T y) { return std::fmod(x, y); }); return true;
    case Primitive::remainder:
      each<T, T>(r, a, b, n, [](T x, T y) {
        const T m = std::fmod(x, y);
        return m != 0 && (m < 0) != (y < 0) ? m + y : m;
      });
      return true;
    case Primitive::pow: each<T, T>(r, a, b, n, [](T x, T y) { return std::pow(x, y); }); return true;
    case Primitive::atan2: each<T, T>(r, a, b, n, [](T x, T y) { return std::atan2(x, y); }); return true;
    case Primitive::minimum: each<T, T>(r, a, b, n, [](T x, T y) { return x != x ? x : y != y ? y : x < y ? x : y; }); return true;
    case Primitive::maximum: each<T, T>(r, a, b, n, [](T x, T y) { return x != x ? x : y != y ? y : x > y ? x : y; }); return true;
    default: return false;
  }
}

/// Integer arithmetic happens in uint64 (or the type itself, where signs matter), so that it wraps without undefined behaviour.
template <class T>
T wrap(std::uint64_t x) {
  return static_cast<T>(x);
}

template <class T>
std::uint64_t wide(T x) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
}

template <class T>
T truncated_quotient(T x, T y) {
  if (y == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return wrap<T>(0 - wide(x));
  return static_cast<T>(x / y);
}

template <class T>
T truncated_remainder(T x, T y) {
  if (y == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return 0;
  return static_cast<T>(x % y);
}

template <class T>
T floored_remainder(T x, T y) {
  const T m = truncated_remainder(x, y);
  return m != 0 && (m < 0) != (y < 0) ? static_cast<T>(m + y) : m;
}

template <class T>
T floored_quotient(T x, T y) {
  const T q = truncated_quotient(x, y), m = truncated_remainder(x, y);
  return m != 0 && (m < 0) != (y < 0) ? static_cast<T>(q - 1) : q;
}

template <class T>
T integer_power(T x, T y) {
  if constexpr (std::is_signed_v<T>)
    if (y < 0) return x == 1 ? T{1} : x == -1 ? static_cast<T>(y & 1 ? -1 : 1) : T{0};
  std::uint64_t result = 1, base = wide(x);
  for (std::uint64_t e = wide(y); e; e >>= 1, base *= base)
    if (e & 1) result *= base;
  return wrap<T>(result);
}

template <class T>
T shifted_left(T x, T y) {
  return y < 0 || wide(y) >= sizeof(T) * 8 ? T{0} : wrap<T>(wide(x) << y);
}

template <class T>
T shifted_right(T x, T y) {
  return y < 0 || wide(y) >= sizeof(T) * 8 ? static_cast<T>(x < 0 ? -1 : 0) : static_cast<T>(x >> y);
}

template <class T>
bool integer_unary(Primitive p, const void* a, void* r, std::size_t n) {
  switch (p) {
    case Primitive::neg: each<T, T>(r, a, n, [](T x) { return wrap<T>(0 - wide(x)); }); return true;
    case Primitive::abs: each<T, T>(r, a, n, [](T x) { return x < 0 ? wrap<T>(0 - wide(x)) : x; }); return true;
    case Primitive::bitwise_not: each<T, T>(r, a, n, [](T x) { return ~x; }); return true;
    case Primitive::floor:
    case Primitive::ceil:
    case Primitive::trunc:
    case Primitive::round: each<T, T>(r, a, n, [](T x) { return x; }); return true;
    case Primitive::isnan: each<std::uint8_t, T>(r, a, n, [](T) { return false; }); return true;
    default: return false;
  }
}

template <class T>
bool integer_binary(Primitive p, const void* a, const void* b, void* r, std::size_t n) {
  switch (p) {
    case Primitive::add: each<T, T>(r, a, b, n, [](T x, T y) { return wrap<T>(wide(x) + wide(y)); }); return true;
    case Primitive::sub: each<T, T>(r, a, b, n, [](T x, T y) { return wrap<T>(wide(x) - wide(y)); }); return true;
    case Primitive::mul: each<T, T>(r, a, b, n, [](T x, T y) { return wrap<T>(wide(x) * wide(y)); }); return true;
    case Primitive::floor_div: each<T, T>(r, a, b, n, floored_quotient<T>); return true;
    case Primitive::trunc_div: each<T, T>(r, a, b, n, truncated_quotient<T>); return true;
    case Primitive::remainder: each<T, T>(r, a, b, n, floored_remainder<T>); return true;
    case Primitive::fmod: each<T, T>(r, a, b, n, truncated_remainder<T>); return true;
    case Primitive::pow: each<T, T>(r, a, b, n, integer_power<T>); return true;
    case Primitive::minimum: each<T, T>(r, a, b, n, [](T x, T y) { return x < y ? x : y; }); return true;
    case Primitive::maximum: each<T, T>(r, a, b, n, [](T x, T y) { return x > y ? x : y; }); return true;
    case Primitive::bitwise_and: each<T, T>(r, a, b, n, [](T x, T y) { return x & y; }); return true;
    case Primitive::bitwise_or: each<T, T>(r, a, b, n, [](T x, T y) { return x | y; }); return true;
    case Primitive::bitwise_xor: each<T, T>(r, a, b, n, [](T x, T y) { return x ^ y; }); return true;
    case Primitive::shift_left: each<T, T>(r, a, b, n, shifted_left<T>); return true;
    case Primitive::shift_right: each<T, T>(r, a, b, n, shifted_right<T>); return true;
    default: return false;
  }
}

bool bool_binary(Primitive p, const void* a, const void* b, void* r, std::size_t n) {
  using B = std::uint8_t;
  switch (p) {
    case Primitive::logical_and:
    case Primitive::bitwise_and:
    case Primitive::minimum:
    case Primitive::mul: each<B, B>(r, a, b, n, [](B x, B y) { return x & y; }); return true;
    case Primitive::logical_or:
    case Primitive::bitwise_or:
    case Primitive::maximum:
    case Primitive::add: each<B, B>(r, a, b, n, [](B x, B y) { return x | y; }); return true;
    case Primitive::logical_xor:
    case Primitive::bitwise_xor: each<B, B>(r, a, b, n, [](B x, B y) { return x ^ y; }); return true;
    default: return false;
  }
}

template <class T>
bool comparison(Primitive p, const void* a, const void* b, void* r, std::size_t n) {
  using B = std::uint8_t;
  switch (p) {
    case Primitive::eq: each<B, T>(r, a, b, n, [](T x, T y) { return x == y; }); return true;
    case Primitive::ne: each<B, T>(r, a, b, n, [](T x, T y) { return x != y; }); return true;
    case Primitive::lt: each<B, T>(r, a, b, n, [](T x, T y) { return x < y; }); return true;
    case Primitive::le: each<B, T>(r, a, b, n, [](T x, T y) { return x <= y; }); return true;
    case Primitive::gt: each<B, T>(r, a, b, n, [](T x, T y) { return x > y; }); return true;
    case Primitive::ge: each<B, T>(r, a, b, n, [](T x, T y) { return x >= y; }); return true;
    default: return false;
  }
}

template <class T>
bool arithmetic(Primitive p, const void* a, const void* b, void* r, std::size_t n) {
  if (comparison<T>(p, a, b, r, n)) return true;
  if (p == Primitive::sign) {
    each<T, T>(r, a, n, [](T x) { return static_cast<T>((x > 0) - (x < 0)); });
    return true;
  }
  if constexpr (std::is_floating_point_v<T>)
    return float_unary<T>(p, a, r, n) || float_binary<T>(p, a, b, r, n);
  else
    return integer_unary<T>(p, a, r, n) || integer_binary<T>(p, a, b, r, n);
}

bool bool_arithmetic(Primitive p, const void* a, const void* b, void* r, std::size_t n) {
  using B = std::uint8_t;
  if (p == Primitive::logical_not || p == Primitive::bitwise_not) {
    each<B, B>(r, a, n, [](B x) { return x ^ 1; });
    return true;
  }
  return comparison<B>(p, a, b, r, n) || bool_binary(p, a, b, r, n);
}

void select(DType dtype, const void* condition, const void* a, const void* b, void* r, std::size_t n) {
  const auto* c = static_cast<const std::uint8_t*>(condition);
  with_type(dtype, [&](auto element) {
    using T = decltype(element);
    const auto* x = static_cast<const T*>(a);
    const auto* y = static_cast<const T*>(b);
    for (std::size_t i = 0; i < n; ++i) static_cast<T*>(r)[i] = c[i] ? x[i] : y[i];
  });
}

template <class T>
void fused(const void* a, const void* b, const void* c, void* r, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    static_cast<T*>(r)[i] = std::fma(static_cast<const T*>(a)[i], static_cast<const T*>(b)[i], static_cast<const T*>(c)[i]);
}

/// `complex`, `real` and `imag`, of numbers whose parts are of type T.
template <class T>
void parts(Primitive p, const void* a, const void* b, void* r, std::size_t n) {
  using C = std::complex<T>;
  if (p == Primitive::complex) each<C, T>(r, a, b, n, [](T x, T y) { return C(x, y); });
  if (p == Primitive::real) each<T, C>(r, a, n, [](C z) { return z.real(); });
  if (p == Primitive::imag) each<T, C>(r, a, n, [](C z) { return z.imag(); });
}

}  // namespace

void compute(const Instruction& i, DType argument, const void* a, const void* b, const void* c, void* result, std::size_t n) {
  if (i.op == Primitive::select) return select(i.dtype, a, b, c, result, n);
  if (i.op == Primitive::convert) return convert_strided(argument, a, 1, i.dtype, result, 1, n);
  if (i.op == Primitive::bit_cast) {
    TENON_CHECK(size_of(argument) == size_of(i.dtype), "bit_cast of {} to {}", name_of(argument), name_of(i.dtype));
    std::memcpy(result, a, n * size_of(argument));
    return;
  }
  if (i.op >= Primitive::complex) return real_type(i.dtype) == DType::f32 ? parts<float>(i.op, a, b, result, n) : parts<double>(i.op, a, b, result, n);
  bool done = false;
  if (i.op == Primitive::fma) {
    done = is_float(argument) && !is_reduced_float(argument);
    if (argument == DType::f32) fused<float>(a, b, c, result, n);
    if (argument == DType::f64) fused<double>(a, b, c, result, n);
  } else {
    done = with_type(argument, [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_same_v<T, Bool>)
        return bool_arithmetic(i.op, a, b, result, n);
      else if constexpr (kIsStorage<T>)
        return false;
      else
        return arithmetic<T>(i.op, a, b, result, n);
    });
  }
  TENON_CHECK(done, "the primitive {} is not defined for {}", name_of(i.op), name_of(argument));
}

void fill_constant(DType dtype, std::uint64_t payload, void* result, std::size_t n) {
  static_assert(std::endian::native == std::endian::little);
  auto* bytes = static_cast<std::byte*>(result);
  const std::size_t width = size_of(dtype);
  const std::uint64_t words[2] = {payload, 0};
  for (std::size_t i = 0; i < n; ++i) std::memcpy(bytes + i * width, words, width);
}

void convert_strided(DType from, const void* source, std::ptrdiff_t source_stride, DType to, void* target, std::ptrdiff_t target_stride,
                     std::size_t n) {
  with_type(from, [&](auto f) {
    with_type(to, [&](auto t) {
      using From = decltype(f);
      using To = decltype(t);
      const auto* x = static_cast<const From*>(source);
      auto* r = static_cast<To*>(target);
      for (std::size_t i = 0; i < n; ++i)
        r[static_cast<std::ptrdiff_t>(i) * target_stride] = convert_element<To>(x[static_cast<std::ptrdiff_t>(i) * source_stride]);
    });
  });
}

void gather(DType from, const void* source, const std::int64_t* offsets, DType to, void* target, std::size_t n) {
  with_type(from, [&](auto f) {
    with_type(to, [&](auto t) {
      using From = decltype(f);
      using To = decltype(t);
      for (std::size_t i = 0; i < n; ++i) static_cast<To*>(target)[i] = convert_element<To>(static_cast<const From*>(source)[offsets[i]]);
    });
  });
}

void scatter(DType from, const void* source, DType to, void* target, const std::int64_t* offsets, std::size_t n) {
  with_type(from, [&](auto f) {
    with_type(to, [&](auto t) {
      using From = decltype(f);
      using To = decltype(t);
      for (std::size_t i = 0; i < n; ++i) static_cast<To*>(target)[offsets[i]] = convert_element<To>(static_cast<const From*>(source)[i]);
    });
  });
}

}  // namespace tenon::ops::reference
