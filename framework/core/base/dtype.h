// Element types of tensors. Header-only: plugins that link nothing read graphs with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon {

/// The element types, in the order of the graph buffer. float16 and bfloat16 are storage: arithmetic on them is float32.
/// Complex numbers are moved and taken apart: what is computed of them is computed of their parts.
enum class DType : std::uint8_t { b8, u8, i8, i16, i32, i64, f16, bf16, f32, f64, c64, c128 };

inline constexpr std::size_t kDTypeCount = 12;

namespace detail {
struct DTypeRow {
  std::string_view name;
  std::size_t bytes;
};
inline constexpr DTypeRow kDTypeRows[kDTypeCount] = {{"bool", 1}, {"u8", 1},   {"i8", 1},  {"i16", 2}, {"i32", 4}, {"i64", 8},
                                                     {"f16", 2},  {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"c64", 8}, {"c128", 16}};
}  // namespace detail

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) { return detail::kDTypeRows[static_cast<std::size_t>(dtype)].bytes; }

/// The name in the text form: "bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128".
constexpr std::string_view name_of(DType dtype) { return detail::kDTypeRows[static_cast<std::size_t>(dtype)].name; }

/// The dtype of a name in the text form; nothing when the name is none.
constexpr std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kDTypeCount; ++i)
    if (detail::kDTypeRows[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

constexpr bool is_bool(DType t) { return t == DType::b8; }
constexpr bool is_signed_int(DType t) { return t >= DType::i8 && t <= DType::i64; }
/// True for the signed and unsigned integers; bool is none.
constexpr bool is_int(DType t) { return t >= DType::u8 && t <= DType::i64; }
constexpr bool is_float(DType t) { return t >= DType::f16 && t <= DType::f64; }
constexpr bool is_complex(DType t) { return t >= DType::c64; }
/// True for the floats that are storage only.
constexpr bool is_reduced_float(DType t) { return t == DType::f16 || t == DType::bf16; }
/// The type in which arithmetic on `t` happens: float32 for float16 and bfloat16, else `t`.
constexpr DType compute_type(DType t) { return is_reduced_float(t) ? DType::f32 : t; }
/// The type of the parts of a complex number; of other types `t`.
constexpr DType real_type(DType t) { return t == DType::c64 ? DType::f32 : t == DType::c128 ? DType::f64 : t; }
/// The complex type whose parts have that real type: complex64 for all floats but float64.
constexpr DType complex_type(DType t) { return is_complex(t) ? t : t == DType::f64 ? DType::c128 : DType::c64; }

}  // namespace tenon
