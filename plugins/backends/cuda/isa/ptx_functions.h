// Functions that are a polynomial on every target, or one of our own here: nothing is linked to PTX.
#pragma once

#include "scalars/functions.h"

namespace tenon::cuda {

/// Whether the primitive is a function that `codegen::emit_function` is asked for.
bool is_function(ops::Primitive p);
/// Whether there is code for it.
bool has_function(ops::Primitive p, DType dtype);

/// Emits one that the shared code does not have, of values or of lanes; `y` is the second argument of those that have two.
llvm::Value* emit_ptx_function(codegen::LaneBuilder& b, ops::Primitive p, llvm::Value* x, llvm::Value* y);

}  // namespace tenon::cuda
