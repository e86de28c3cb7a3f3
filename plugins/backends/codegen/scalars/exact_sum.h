// Sums whose last product needs no rounding.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace tenon::codegen {

/// Emits a + b. Where one of them is a product in float64 of numbers that were float32 or narrower, it is exact, and a fused
/// multiplication gives the same bits and flags: sums of squares.
llvm::Value* emit_sum(llvm::IRBuilder<>& ir, llvm::Value* a, llvm::Value* b, bool has_fma);

}  // namespace tenon::codegen
