// The processor that this process runs on, as code generation sees it.
#pragma once

#include "isa/target.h"

namespace tenon::llvm_backend {

/// Detects the processor. `width` limits the vectors: 64, 32 or 16 bytes; 0 takes what the machine has. Loads libmvec.
Target detect_machine(unsigned width = 0);

/// The address of a function of libmvec ("_ZGVeN16v_sinf"), or null.
void* vector_function(const char* name);

}  // namespace tenon::llvm_backend
