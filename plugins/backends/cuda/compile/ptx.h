// Modules as PTX.
#pragma once

#include <functional>
#include <string>

namespace llvm {
class Module;
}

namespace tenon::cuda {

/// The text of what `fill` puts into a new module, for an architecture ("sm_80", "sm_90a"). `hoists`: what does not change in a loop is computed
/// before it. Thread-safe.
std::string to_ptx(const std::string& architecture, const std::function<void(llvm::Module&)>& fill, bool hoists = false);

/// The text where a kernel's blocks form clusters of so many, which LLVM 19 cannot say.
std::string with_clusters(std::string ptx, const std::string& kernel, unsigned blocks);

}  // namespace tenon::cuda
