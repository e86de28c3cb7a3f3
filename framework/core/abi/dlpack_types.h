// Tenon's element types as DLPack's and back. Header-only.
#pragma once

#include <optional>

#include "core/abi/dlpack.h"
#include "core/base/dtype.h"

namespace tenon {

constexpr DLDataType dlpack_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(size_of(dtype) * 8);
  if (is_bool(dtype)) return {kDLBool, bits, 1};
  if (dtype == DType::u8) return {kDLUInt, bits, 1};
  if (is_signed_int(dtype)) return {kDLInt, bits, 1};
  if (dtype == DType::bf16) return {kDLBfloat, bits, 1};
  if (is_complex(dtype)) return {kDLComplex, bits, 1};
  return {kDLFloat, bits, 1};
}

/// Nothing for a type that Tenon does not have.
constexpr std::optional<DType> dtype_of(DLDataType type) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const DLDataType known = dlpack_type(static_cast<DType>(i));
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace tenon
