// A backend in use: its plugin, the object that the plugin made for one set of options, and what keeps two threads out of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "host/plugins/contact/plugin_call.h"
#include "host/plugins/registry/registry.h"

namespace tenon::host {

/// What a backend did in a session. Added to by every thread that runs programs.
struct BackendCounters {
  std::atomic<std::int64_t> nodes{0}, steps{0}, runs{0}, timed_runs{0}, run_nanoseconds{0}, compile_nanoseconds{0};
  void reset();
};

/// One object made by a backend's `create`.
class BackendInstance {
 public:
  /// Makes the backend's object. Throws with the plugin's code and words when it cannot be made.
  BackendInstance(const Plugin& plugin, const std::string& options, std::shared_ptr<BackendCounters> counters);
  ~BackendInstance();
  BackendInstance(const BackendInstance&) = delete;

  const std::string& name() const { return plugin_.name; }
  const Plugin& plugin() const { return plugin_; }
  const TenonBackend& table() const { return *plugin_.descriptor->backend; }
  void* self() const { return self_; }
  bool has(std::uint32_t flag) const { return (table().flags & flag) != 0; }
  BackendCounters& counters() const { return *counters_; }

  /// Calls the backend, here or in the helper process (plugins.isolate), one call at a time unless the backend is re-entrant. An error
  /// carries the plugin's own words where it gave some.
  std::optional<Error> claim(const TenonGraph& graph, const TenonClaims& claims);
  /// `constants_read`: those whose bytes the backend read.
  std::optional<Error> compile(const TenonGraph& graph, const std::string& options, TenonArtefact& artefact, std::vector<std::uint32_t>& constants_read);
  /// The lock that `execute` needs, or null for a backend whose execute is re-entrant.
  std::mutex* execute_lock() { return has(TENON_EXECUTE_REENTRANT) ? nullptr : &execute_mutex_; }

  /// Whether plugins.check means it: not our own driver's, whose calls of library functions may have effects.
  bool can_be_checked() const { return !plugin_.own || !plugin_.path.empty(); }

  /// Calls a function of the plugin: what an earlier call reported is forgotten, and nothing comes out but a code.
  template <class Call>
  std::int32_t call(const char* function, const Call& body) const {
    take_report();
    return call_plugin(plugin_.watched(), function, body);
  }

 private:
  void try_first() const;
  std::unique_lock<std::mutex> lock_compile();
  std::optional<Error> compile_isolated(const TenonGraph& graph, const std::string& options, TenonArtefact& artefact, std::vector<std::uint32_t>& constants_read);

  const Plugin& plugin_;
  std::string options_;
  void* self_ = nullptr;
  std::shared_ptr<BackendCounters> counters_;
  std::mutex compile_mutex_;
  std::mutex execute_mutex_;
};

/// The devices that a backend names, each as "cpu:0", or as a kind alone ("cpu") where it takes every one.
std::vector<std::string> served_devices(const TenonBackend& backend);

/// The failure of a call into a plugin as an error: the plugin's own words where it gave some.
Error plugin_error(std::int32_t code, const std::string& what);

}  // namespace tenon::host
