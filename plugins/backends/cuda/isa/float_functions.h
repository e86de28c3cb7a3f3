// Functions of floats by formulas over exp, log and arithmetic, of a value or of lanes; float32 and float64 unless said.
#pragma once

#include "scalars/lane_builder.h"

namespace tenon::cuda {

/// exp, log of float64; about 1 ulp.
llvm::Value* exp_f64(codegen::LaneBuilder& b, llvm::Value* x);
llvm::Value* log_f64(codegen::LaneBuilder& b, llvm::Value* x);

/// exp2, expm1, log2, log10, log1p, sinh, cosh, tanh, asinh, acosh, atanh, asin, acos, atan; a few ulp. Null for other functions.
llvm::Value* function_by_formula(codegen::LaneBuilder& b, ops::Primitive p, llvm::Value* x);
llvm::Value* atan2_by_formula(codegen::LaneBuilder& b, llvm::Value* y, llvm::Value* x);

/// erfc in float32: 1 - erf near 0, else with a relative error of a few ulp.
llvm::Value* erfc_f32(codegen::LaneBuilder& b, llvm::Value* x);
/// x^y in float32, rounded from float64.
llvm::Value* pow_f32(codegen::LaneBuilder& b, llvm::Value* x, llvm::Value* y);
/// What is left of x when y is taken away as often as it fits, exactly; a function of the module, of one lane.
llvm::Function* fmod_function(codegen::LaneBuilder& b, llvm::Type* type);

}  // namespace tenon::cuda
