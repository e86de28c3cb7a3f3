// Machine code in this process: LLVM modules to object files, object files to functions.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lower/target.h"

namespace llvm {
class Module;
}

namespace tenon::llvm_backend {

/// How much work the code generator does: `quick` compiles fastest, `tuned` is for code that all time is spent in.
enum class Tier { quick, standard, tuned };

/// The code of one module: an object file, and the functions outside of it that it calls. Good for another process on the same kind of
/// machine.
struct ObjectCode {
  std::string bytes;
  std::set<std::string> routines;
};

/// Functions in this process.
struct LinkedCode {
  std::vector<void*> functions;
  std::shared_ptr<const void> memory;  // their code goes with its last copy
};

/// One a process and kind of machine.
class Jit {
 public:
  explicit Jit(codegen::Target target);
  ~Jit();

  const codegen::Target& target() const { return target_; }

  /// Compiles what `fill` puts into a new module. Thread-safe. `listing` takes IR and assembly as text when it is set.
  ObjectCode compile(Tier tier, const std::function<void(llvm::Module&)>& fill, const std::function<void(const std::string&)>& listing = {});
  /// Takes the code into the process and gives the functions `names` in it. Objects do not see each other's names. Thread-safe.
  LinkedCode link(const ObjectCode& object, const std::vector<std::string>& names);

 private:
  struct Engine;
  codegen::Target target_;
  std::shared_ptr<Engine> engine_;  // linked code keeps it, too
};

}  // namespace tenon::llvm_backend
