// Functions of the exponential and trigonometric families by polynomials of our own, which all targets share.
#pragma once

#include <initializer_list>

#include "scalars/lane_builder.h"

namespace tenon::codegen {

/// Emits a function of floats: its polynomial, or what the instruction set has for it.
llvm::Value* emit_function(LaneBuilder& builder, ops::Primitive p, llvm::Value* x, llvm::Value* y);

/// The polynomial with the highest coefficient first, by Horner's rule.
llvm::Value* polynomial(LaneBuilder& builder, llvm::Value* x, std::initializer_list<double> coefficients);

/// sin or cos in float32, about 1 ulp, of magnitudes up to kLargestTurned: x = n pi/2 + r with pi/2 in three parts, of which the first
/// leaves no rounding error in a fused multiply-add; polynomials on |r| <= pi/4 (Cephes sinf and cosf); n modulo 4 says which and its sign.
llvm::Value* circular_f32(LaneBuilder& builder, ops::Primitive p, llvm::Value* x);
inline constexpr double kLargestTurned = 131072.0;

}  // namespace tenon::codegen
