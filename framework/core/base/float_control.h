// How a thread computes with floating-point numbers: rounding, flushing of subnormal numbers, which exceptions trap.
#pragma once

#include <cstdint>
#include <string>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace tenon {

/// The control words of a thread; its status flags (what has happened so far) are no part of it.
struct FloatControl {
  std::uint64_t vector = 0;  // x86: MXCSR; arm64: FPCR; elsewhere the rounding mode
  std::uint16_t x87 = 0;

  bool operator==(const FloatControl&) const = default;

  static FloatControl current() {
    FloatControl now;
#if defined(__x86_64__)
    now.vector = _mm_getcsr() & ~unsigned{_MM_EXCEPT_MASK};
    __asm__ __volatile__("fnstcw %0" : "=m"(now.x87));
#elif defined(__aarch64__)
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(now.vector));
#else
    now.vector = static_cast<std::uint64_t>(std::fegetround());
#endif
    return now;
  }

  /// Makes the thread compute so.
  void restore() const {
#if defined(__x86_64__)
    _mm_setcsr(static_cast<unsigned>(vector) | (_mm_getcsr() & _MM_EXCEPT_MASK));
    __asm__ __volatile__("fldcw %0" : : "m"(x87));
#elif defined(__aarch64__)
    __asm__ __volatile__("msr fpcr, %0" : : "r"(vector));
#else
    std::fesetround(static_cast<int>(vector));
#endif
  }

  /// What is different in `other`, in words: "the rounding mode and flushing of subnormal numbers".
  std::string difference(const FloatControl& other) const;
};

}  // namespace tenon
