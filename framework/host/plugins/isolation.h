// Calls of a backend that the host lets run in the helper process only (plugins.isolate).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/abi/plugin.h"
#include "core/base/error.h"
#include "host/plugins/file.h"
#include "host/plugins/manifest.h"

namespace tenon::host {

/// What an isolated compile gave.
struct IsolatedArtefact {
  std::string stored;                        // for the backend's `load`
  std::vector<std::uint32_t> constants_read;  // sorted
};

/// Starts a helper for each claim and each compile: graph and constants go in, claims or the stored artefact come back. Thread-safe.
class Isolation {
 public:
  /// `library` is the plugin's open library; a call that takes longer than `seconds` has failed.
  Isolation(Descriptor library, Manifest manifest, std::string program, double seconds)
      : library_(std::move(library)), manifest_(std::move(manifest)), program_(std::move(program)), seconds_(seconds) {}

  /// Lets a backend made with `create_options` claim, and repeats its calls on `claims`. An error says how it failed or died.
  std::optional<Error> claim(const std::string& create_options, const TenonGraph& graph, const TenonClaims& claims) const;
  Result<IsolatedArtefact> compile(const std::string& create_options, const TenonGraph& graph, const std::string& options) const;

 private:
  Result<struct Message> call(const char* what, const std::string& create_options, const TenonGraph& graph, const std::string& options) const;

  Descriptor library_;
  Manifest manifest_;
  std::string program_;
  double seconds_;
};

}  // namespace tenon::host
