// Machine code in this process: LLVM modules in, functions out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lower/target.h"

namespace llvm {
class Module;
}

namespace tenon::llvm_backend {

/// How much work the code generator does: `quick` compiles fastest, `tuned` is for code that all time is spent in.
enum class Tier { quick, standard, tuned };

/// One a process and kind of machine; every function that it compiled lives as long as it does.
class Jit {
 public:
  explicit Jit(codegen::Target target);
  ~Jit();

  const codegen::Target& target() const { return target_; }

  /// Compiles what `fill` puts into a new module and gives the addresses of `names` in it. Thread-safe. Names must never have been
  /// used before. `listing` takes IR and assembly as text when it is set.
  std::vector<void*> compile(const std::vector<std::string>& names, Tier tier, const std::function<void(llvm::Module&)>& fill,
                             const std::function<void(const std::string&)>& listing = {});

 private:
  struct Engine;
  codegen::Target target_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace tenon::llvm_backend
