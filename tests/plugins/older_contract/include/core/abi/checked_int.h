// Integer arithmetic of symbolic sizes: Python's floor division and modulo, and nothing that wraps.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace tenon::detail {

[[noreturn]] inline void overflow() { throw std::overflow_error("a symbolic size does not fit in 64 bits"); }

inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_add_overflow(a, b, &r)) overflow();
  return r;
}

inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) overflow();
  return r;
}

/// Throws std::domain_error for a divisor of 0.
inline std::int64_t checked_floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) throw std::domain_error("a symbolic size is divided by zero");
  if (b == -1) return checked_mul(a, -1);
  std::int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

/// Throws std::domain_error for a divisor of 0.
inline std::int64_t checked_mod(std::int64_t a, std::int64_t b) {
  if (b == 0) throw std::domain_error("a symbolic size is divided by zero");
  if (b == -1) return 0;
  std::int64_t r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

}  // namespace tenon::detail
