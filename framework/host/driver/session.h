// A session: configuration, plugins, events, and the backends that have been set up.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/config/config.h"
#include "host/devices/device_list.h"
#include "host/diagnostics/events.h"
#include "host/plugins/registry/backend_instance.h"
#include "host/plugins/registry/registry.h"
#include "host/runtime/environment.h"

namespace tenon::host {

/// What a TenonSession stands for. Shared by the session's handle and by every program that was compiled in it. Thread-safe.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// Reads the configuration and the manifests. Throws for what is wrong in the configuration.
  explicit Session(const TenonSessionOptions* options);

  Config config;
  Events events;
  Registry registry;
  LivePlans live_plans;
  DeviceList devices;

  /// The backends for a compile, in order, the fallback last. `names` are the caller's wish: one that cannot be had is an error. Without
  /// a wish the configuration's are taken, and one that cannot be had is an event. `options` is the compile's JSON object.
  std::vector<std::shared_ptr<BackendInstance>> backends(const std::vector<std::string>& names, const std::vector<std::string>& own,
                                                         const nlohmann::json& options);

  /// Opens the devices of backends by name, or of the configuration's. Throws (not_found) where that device is none of them.
  void open_device(const std::vector<std::string>& names, DLDevice device);
  /// Likewise, the device that a name says (DeviceList::named).
  DLDevice find_device(const std::vector<std::string>& names, std::string_view device);

  /// Answers tenon_session_query.
  nlohmann::json query(const std::string& what);
  void reset_statistics();

 private:
  void open_devices(const std::vector<std::string>& names);
  /// Null for a backend that could not be set up, now or before: that is an event and a warning. Throws when its options are wrong.
  std::shared_ptr<BackendInstance> instance(const Plugin& plugin, const nlohmann::json& options);
  std::string why_no_instance(const std::string& name);
  nlohmann::json statistics();
  /// The plugin, with every decision, and what devices it brings.
  nlohmann::json describe_plugin(const std::string& name);

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<BackendCounters>> counters_;          // by backend
  std::map<std::string, std::shared_ptr<BackendInstance>> instances_;         // by backend and options; null: could not be made
  std::map<std::string, std::string> why_not_made_;                           // by backend
};

/// The options of a backend: its section of the configuration, overridden by the member of its name in a compile's options, and the
/// compile's mode.
std::string backend_options(const Config& config, const std::string& name, const nlohmann::json& options);

}  // namespace tenon::host

/// The handle of the C API.
struct TenonSession {
  std::shared_ptr<tenon::host::Session> session;
};
