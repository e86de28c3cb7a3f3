// Functions of floats by libraries: glibc's libmvec (at most 4 ulp), or a routine that calls the C library for each lane.
#pragma once

#include <functional>
#include <string>

#include "scalars/lane_builder.h"
#include "isa/target.h"

namespace tenon::llvm_backend {

/// A function that has no polynomial of its own, or one that holds near 0 alone: then vectors with a lane far from it go to the library.
llvm::Value* library_function(codegen::LaneBuilder& builder, const Target& target, ops::Primitive p, llvm::Value* x, llvm::Value* y);

/// Applies a function of `width` lanes to a value of any number of lanes; lanes past the end repeat the last one. `y` may be null.
llvm::Value* in_pieces(codegen::LaneBuilder& builder, llvm::Value* x, llvm::Value* y, unsigned width,
                       const std::function<llvm::Value*(llvm::Value* x, llvm::Value* y)>& call);

/// The name under which the module calls an elementwise routine that is given to the JIT: "tenon_" + primitive + "f32" or "f64".
std::string routine_name(ops::Primitive p, bool is_double);

}  // namespace tenon::llvm_backend
