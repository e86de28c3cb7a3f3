// The microkernel of products of bfloat16 on tile registers (Intel's AMX), which hold 16 rows of 64 bytes.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "isa/target.h"
#include "matrix/microkernel.h"

namespace tenon::llvm_backend {

/// The tile of C: four squares of 16 x 16, which are registers. A panel of b is as wide, so that a pass of it stays in the first-level cache.
inline constexpr TileShape kAmxTile{32, 32};
/// Pairs that one instruction multiplies: a sum's passes are multiples of it, or their last pairs are copied first.
inline constexpr std::int64_t kAmxPairs = 16;

/// Adds two functions without arguments: a thread calls the first before microkernels, and the second after them.
void emit_amx_use(llvm::Module& module, const Target& target, const std::string& enter, const std::string& leave);

/// Adds a MicroKernel and returns it. It takes one step, all of it as one block; the tile's first 16 rows of a lie equally far apart, and so do the others.
/// What C holds is what the sum starts from, whether that is added or continued. Nothing is fetched ahead. Sums are of float32 and run pair by pair;
/// subnormal numbers are zero (Intel, Architecture Instruction Set Extensions Programming Reference, TDPBF16PS).
llvm::Function* emit_amx_kernel(llvm::Module& module, const Target& target, const std::string& name);

}  // namespace tenon::llvm_backend
