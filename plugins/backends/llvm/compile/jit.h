// Machine code in this process: LLVM modules to object files, object files to functions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "code_memory.h"
#include "isa/target.h"

namespace llvm {
class Module;
}

namespace tenon::llvm_backend {

/// How much work the code generator does: `quick` compiles fastest, `tuned` is for code that all time is spent in.
enum class Tier { quick, standard, tuned };

/// The code of one module: an object file. Good for another process on the same kind of machine.
using ObjectCode = std::string;

/// Functions in this process.
struct LinkedCode {
  std::vector<void*> functions;
  std::vector<std::size_t> sizes;           // of each in bytes
  std::shared_ptr<const CodePiece> memory;  // their code goes with its last copy
};

/// One a process and kind of machine.
class Jit {
 public:
  explicit Jit(Target target);
  ~Jit();

  const Target& target() const { return target_; }

  /// Compiles what `fill` puts into a new module. Thread-safe. `listing` takes IR and assembly as text when it is set.
  ObjectCode compile(Tier tier, const std::function<void(llvm::Module&)>& fill, const std::function<void(const std::string&)>& listing = {});

 private:
  struct Machines;
  Target target_;
  std::unique_ptr<Machines> idle_;
};

/// Takes the code into the process and gives the functions `names` in it. It may call the routines of this library alone. Objects do not
/// see each other's names. Thread-safe.
LinkedCode link(const ObjectCode& object, const std::vector<std::string>& names);

}  // namespace tenon::llvm_backend
