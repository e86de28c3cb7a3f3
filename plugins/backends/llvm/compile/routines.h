// Functions of this library that generated code may call; nothing else of the process is visible to it.
#pragma once

#include <string>

namespace tenon::llvm_backend {

/// The address behind a name that generated code refers to, or null.
void* routine_address(const std::string& name);

}  // namespace tenon::llvm_backend
