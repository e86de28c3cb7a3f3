// Masks as vectors of integers, for processors that have no registers for masks.
#pragma once

namespace llvm {
class Function;
}

namespace tenon::llvm_backend {

/// Replaces logic on vectors of i1 by logic on vectors of integers as wide as what was compared. A comparison of floats gives all bits of a
/// lane on x86 without AVX-512, and a blend reads the sign bit; LLVM 19 packs i1 between the two into bytes, one shuffle and more an operand.
void widen_masks(llvm::Function& function);

}  // namespace tenon::llvm_backend
