// Machine code that outlives the process: what it depends on, and how it is used again.
#pragma once

#include <string>
#include <vector>

#include "jit.h"
#include "store/code_store.h"

namespace tenon::llvm_backend {

/// A view of the host's store for one build of this library and one kind of machine: what another build, another processor or other
/// code generation options left there is not found. Where the build cannot be told nothing is stored.
codegen::CodeStore code_store(const HostServices& host, const Target& target);

/// Functions of a stored object, or none: code that cannot be used is compiled anew.
LinkedCode linked(const codegen::CodeStore& store, const std::string& key, const std::vector<std::string>& names);

}  // namespace tenon::llvm_backend
