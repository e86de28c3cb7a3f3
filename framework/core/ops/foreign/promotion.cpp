#include "core/ops/foreign/promotion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/float16.h"

namespace tenon::ops {
namespace {

/// Integers: the wider; unsigned with signed of the same width needs the next wider.
DType common_integer(DType a, DType b) {
  if (a == DType::u8) return b == DType::i8 ? DType::i16 : b;
  if (b == DType::u8) return a == DType::i8 ? DType::i16 : a;
  return std::max(a, b);
}

DType common_float_type(DType a, DType b) {
  if (is_reduced_float(a) && is_reduced_float(b) && a != b) return DType::f32;
  return std::max(a, b);
}

/// NumPy: a float that holds all values of the integer as well as float and integer types do.
DType numpy_float_with(DType floating, DType integer) {
  if (integer == DType::i32 || integer == DType::i64) return DType::f64;
  if (integer == DType::i16) return std::max(floating, DType::f32);
  return floating;
}

/// torch's c10 `combine_categories`: a lower category counts only where it is of a higher kind.
DType combine(DType higher, DType lower) {
  if (is_float(higher)) return higher;
  if (is_bool(higher) || is_float(lower)) return *common_dtype(Flavour::torch, higher, lower);
  return higher;
}

std::optional<DType> common_of(std::span<const PromotionOperand> operands, bool (*counts)(const PromotionOperand&)) {
  std::optional<DType> common;
  for (const PromotionOperand& o : operands)
    if (counts(o)) common = common ? *common_dtype(Flavour::torch, *common, o.dtype) : o.dtype;
  return common;
}

DType promote_torch(std::span<const PromotionOperand> operands, DType default_float) {
  std::vector<PromotionOperand> all(operands.begin(), operands.end());
  for (PromotionOperand& o : all)
    if (o.number && is_float(o.dtype)) o.dtype = default_float;
  const auto dimensioned = common_of(all, [](const PromotionOperand& o) { return !o.number && !o.zero_dimensional; });
  const auto zero = common_of(all, [](const PromotionOperand& o) { return !o.number && o.zero_dimensional; });
  const auto number = common_of(all, [](const PromotionOperand& o) { return o.number; });
  std::optional<DType> result = dimensioned;
  std::optional<DType> low = zero;
  if (number) low = low ? combine(*low, *number) : *number;
  if (low) result = result ? combine(*result, *low) : *low;
  return *result;
}

DType promote_numpy(std::span<const PromotionOperand> operands) {
  std::optional<DType> result;
  for (const PromotionOperand& o : operands) {
    if (o.number) continue;
    const auto common = result ? common_dtype(Flavour::numpy, *result, o.dtype) : std::optional(o.dtype);
    if (!common) throw Exception(error(Code::unsupported, "NumPy has no common type of {} and {}", name_of(*result), name_of(o.dtype)));
    result = common;
  }
  const bool any_tensor = result.has_value();
  for (const PromotionOperand& o : operands) {
    if (!o.number) continue;
    if (!any_tensor)
      result = result ? std::max(*result, o.dtype) : o.dtype;
    else if (is_float(o.dtype) && !is_float(*result))
      result = DType::f64;
    else if (is_int(o.dtype) && is_bool(*result))
      result = DType::i64;
  }
  return *result;
}

}  // namespace

std::optional<DType> common_dtype(Flavour flavour, DType a, DType b) {
  if (is_complex(a) || is_complex(b)) {
    const auto parts = common_dtype(flavour, real_type(a), real_type(b));
    return parts ? std::optional(complex_type(*parts)) : std::nullopt;
  }
  if (a == b || is_bool(b)) return a;
  if (is_bool(a)) return b;
  if (is_int(a) && is_int(b)) return common_integer(a, b);
  if (is_float(a) && is_float(b)) return common_float_type(a, b);
  const DType floating = is_float(a) ? a : b, integer = is_float(a) ? b : a;
  return flavour == Flavour::torch ? floating : numpy_float_with(floating, integer);
}

namespace {

/// As the real parts would, and complex then. torch has complex numbers of 16 bits for its float16, Tenon has none.
DType promote_complex(Flavour flavour, std::span<const PromotionOperand> operands, DType default_float) {
  std::vector<PromotionOperand> parts(operands.begin(), operands.end());
  for (PromotionOperand& o : parts) o.dtype = real_type(o.dtype);
  const DType real = promote(flavour, parts, default_float);
  if (!is_float(real)) throw Exception(Code::unsupported, "complex numbers whose parts are no floats");
  if (flavour == Flavour::torch && real == DType::f16) throw Exception(Code::unsupported, "complex numbers of 16 bits");
  return complex_type(real);
}

}  // namespace

DType promote(Flavour flavour, std::span<const PromotionOperand> operands, DType default_float) {
  TENON_CHECK(!operands.empty(), "promotion of nothing");
  if (std::ranges::any_of(operands, [](const PromotionOperand& o) { return is_complex(o.dtype); })) return promote_complex(flavour, operands, default_float);
  return flavour == Flavour::torch ? promote_torch(operands, default_float) : promote_numpy(operands);
}

DType float_for(Flavour flavour, DType dtype, DType default_float) {
  if (is_float(dtype) || is_complex(dtype)) return dtype;
  if (flavour == Flavour::torch) return default_float;
  if (dtype == DType::i16) return DType::f32;
  return size_of(dtype) == 1 ? DType::f16 : DType::f64;
}

DType promote_to_float(std::span<const PromotionOperand> operands) {
  std::vector<PromotionOperand> arrays;
  for (const PromotionOperand& o : operands)
    if (!o.number) arrays.push_back(o);
  const DType common = promote(Flavour::numpy, operands, DType::f64);
  if (arrays.empty() || promote(Flavour::numpy, arrays, DType::f64) != common) return float_for(Flavour::numpy, common, DType::f64);
  for (PromotionOperand& o : arrays) o.dtype = float_for(Flavour::numpy, o.dtype, DType::f64);
  return promote(Flavour::numpy, arrays, DType::f64);
}

double rounded_to(DType dtype, double number) {
  const auto narrow = static_cast<float>(number);
  if (dtype == DType::f16) return float_of_half(half_of_float(narrow));
  return dtype == DType::bf16 ? float_of_bfloat16(bfloat16_of_float(narrow)) : number;
}

bool reaches(DType dtype, double number) {
  if (!std::isfinite(number)) return true;
  const double largest = dtype == DType::f16 ? 65504 : dtype == DType::bf16 ? float_of_bfloat16(0x7f7f) : dtype == DType::f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  return std::abs(number) <= largest;
}

std::pair<std::int64_t, std::int64_t> range_of(DType dtype) {
  switch (dtype) {
    case DType::b8: return {0, 1};
    case DType::u8: return {0, 255};
    case DType::i8: return {-128, 127};
    case DType::i16: return {-32768, 32767};
    case DType::i32: return {INT32_MIN, INT32_MAX};
    default: return {INT64_MIN, INT64_MAX};
  }
}

bool represents(DType dtype, std::int64_t v) { return v >= range_of(dtype).first && v <= range_of(dtype).second; }

}  // namespace tenon::ops
