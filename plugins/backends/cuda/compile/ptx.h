// Modules as PTX.
#pragma once

#include <functional>
#include <string>

namespace llvm {
class Module;
}

namespace tenon::cuda {

/// The text of what `fill` puts into a new module, for an architecture ("sm_80", "sm_90a"). Thread-safe.
std::string to_ptx(const std::string& architecture, const std::function<void(llvm::Module&)>& fill);

}  // namespace tenon::cuda
