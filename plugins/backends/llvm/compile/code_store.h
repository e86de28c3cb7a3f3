// Machine code that outlives the process: object files of modules, and which of them holds the code of a kernel.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jit.h"
#include "tenon/host_services.h"

namespace tenon::llvm_backend {

/// A view of the host's store for one build of this library and one kind of machine: what another build, another processor or other
/// code generation options left there is not found. Cheap to make; thread-safe.
class CodeStore {
 public:
  CodeStore(const HostServices& host, const codegen::Target& target);

  /// The function of a kernel: in which object, and under which name.
  struct Place {
    std::string object;  // a key
    std::string function;
  };

  /// What a kernel or object is stored under. `kind` keeps things apart that may have the same text.
  std::string key(std::string_view kind, std::string_view text) const;

  std::optional<Place> find_place(const std::string& key) const;
  void put_place(const std::string& key, const Place& place) const;
  std::optional<ObjectCode> find_object(const std::string& key) const;
  void put_object(const std::string& key, const ObjectCode& object) const;

 private:
  HostServices host_;
  std::string origin_;  // build, machine and options; empty when the build cannot be told: then nothing is stored
};

/// Functions of a stored object, or none: code that cannot be used is compiled anew.
LinkedCode linked(const CodeStore& store, const std::string& key, const std::vector<std::string>& names);

}  // namespace tenon::llvm_backend
