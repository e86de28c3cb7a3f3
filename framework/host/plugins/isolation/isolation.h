// Calls of a backend that the host lets run in the helper process first (plugins.isolate).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/plugin.h"
#include "core/base/error.h"
#include "host/diagnostics/events.h"
#include "host/plugins/isolation/probe_program.h"

namespace tenon::host {

/// What an isolated compile gave.
struct IsolatedArtefact {
  std::string stored;                        // for the backend's `load`: in another process that did no harm
  std::vector<std::uint32_t> constants_read;  // sorted
};

/// Starts a helper for each call of one library: graph and constants go in, claims or the stored artefact come back. A library that once did
/// not come back in time is not asked again. Thread-safe.
class Isolation {
 public:
  /// A call that takes longer than `seconds` has failed. `events` counts what the helper found in the cache.
  Isolation(std::shared_ptr<const Helper> helper, double seconds, Events& events) : helper_(std::move(helper)), seconds_(seconds), events_(events) {}

  /// Lets a backend be made with those options and destroyed. An error says how it failed or died; so do those below.
  std::optional<Error> create(const std::string& create_options) const;
  /// Lets a backend made with `create_options` claim, and repeats its calls on `claims`.
  std::optional<Error> claim(const std::string& create_options, const TenonGraph& graph, const TenonClaims& claims) const;
  Result<IsolatedArtefact> compile(const std::string& create_options, const TenonGraph& graph, const std::string& options) const;

 private:
  Result<Message> call(nlohmann::json request, const std::vector<std::string_view>& parts) const;
  Result<Message> call_with_graph(nlohmann::json request, const TenonGraph& graph) const;

  std::shared_ptr<const Helper> helper_;
  double seconds_;
  Events& events_;
  mutable std::mutex mutex_;
  mutable std::optional<Error> given_up_;
};

}  // namespace tenon::host
