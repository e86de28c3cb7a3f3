// The dtypes in which operands meet: torch's categories and NumPy 2's rules (NEP 50).
#pragma once

#include <span>
#include <utility>

#include "core/ops/foreign/foreign_call.h"

namespace tenon::ops {

/// What takes part in promotion: a tensor, or a Python number (weak).
struct PromotionOperand {
  DType dtype = DType::f32;  // of a number: bool, i64 or f64, by its kind
  bool number = false;
  bool zero_dimensional = false;
};

/// The common dtype. Throws (unsupported) where NumPy has only a type that Tenon lacks.
DType promote(Flavour flavour, std::span<const PromotionOperand> operands, DType default_float);

/// The float dtype in which a function of integers computes: torch's default, or NumPy's by width.
DType float_for(Flavour flavour, DType dtype, DType default_float);

/// NumPy: the float in which a function of several operands computes: each array by its own width, unless a number lifts them all
/// (an integer beside bools, a float beside integers).
DType promote_to_float(std::span<const PromotionOperand> operands);

/// The nearest value of a dtype of 16 bits; the number itself for any other dtype.
double rounded_to(DType dtype, double number);
/// Whether a float dtype has values as large as the number, which may be infinite or nan.
bool reaches(DType dtype, double number);
/// Whether an integer is a value of the dtype (floats take all).
bool represents(DType dtype, std::int64_t value);
/// The least and the greatest integer that a dtype of integers, or of bools, holds; all of int64 for floats.
std::pair<std::int64_t, std::int64_t> range_of(DType dtype);

}  // namespace tenon::ops
