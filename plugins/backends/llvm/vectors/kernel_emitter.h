// Emits one kernel as an LLVM function of explicit vector code.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "loops/kernel.h"
#include "isa/target.h"

namespace tenon::llvm_backend {

/// What a kernel reports when an index that it loaded is out of range.
struct IndexFault {
  std::int32_t raised = 0;
  std::int32_t dimension = 0;
  std::int64_t index = 0;
  std::int64_t size = 0;
};

/// The generated function: runs units [begin, end). `buffers` holds one pointer a buffer of the kernel; none may be null.
using KernelFunction = void (*)(void* const* buffers, const std::int64_t* symbols, std::int64_t begin, std::int64_t end, IndexFault* fault);

/// Adds the function `name` to the module.
void emit_kernel(llvm::Module& module, const codegen::Kernel& kernel, const Target& target, const std::string& name);

}  // namespace tenon::llvm_backend
