// float16 and bfloat16 as storage: conversion to and from float32, rounding to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace tenon {

constexpr float float_of_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

constexpr std::uint16_t bfloat16_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40);  // a NaN stays one
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

constexpr float float_of_half(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // subnormal, exact in float32
  return sign ? -magnitude : magnitude;
}

constexpr std::uint16_t half_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00);  // 65520 and more round to infinity
  if (magnitude >= 0x38800000u) {                                                  // normal
    const std::uint32_t rebased = magnitude - (112u << 23);
    return static_cast<std::uint16_t>(sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
  }
  // Subnormal: adding 0.5 puts the last bit of the half where float32's rounding happens.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
}

}  // namespace tenon
