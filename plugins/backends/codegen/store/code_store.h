// Code that outlives the process: objects, and which of them holds the code of a kernel, by text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tenon/host_services.h"

namespace tenon::codegen {

/// A view of the host's store for one origin of code: what another origin left there is not found. Cheap to make; thread-safe.
class CodeStore {
 public:
  /// `origin` says all that code depends on beside its text: the build of the library, the machine, the options. Empty: nothing is stored.
  CodeStore(const HostServices& host, std::string origin) : host_(host), origin_(std::move(origin)) {}

  /// The function of a kernel: in which object, and under which name.
  struct Place {
    std::string object;  // a key
    std::string function;
  };

  /// What a kernel or object is stored under. `kind` keeps things apart that may have the same text.
  std::string key(std::string_view kind, std::string_view text) const;

  std::optional<Place> find_place(const std::string& key) const;
  void put_place(const std::string& key, const Place& place) const;
  std::optional<std::string> find_object(const std::string& key) const;
  void put_object(const std::string& key, const std::string& object) const;

 private:
  HostServices host_;
  std::string origin_;
};

}  // namespace tenon::codegen
