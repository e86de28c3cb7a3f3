// The logarithm of the gamma function's magnitude.
#pragma once

#include "scalars/lane_builder.h"

namespace tenon::codegen {

/// Emits it in float32, rounded from float64: next to its zeros, too, it is as exact as anywhere.
llvm::Value* log_gamma_f32(LaneBuilder& b, llvm::Value* x);

}  // namespace tenon::codegen
