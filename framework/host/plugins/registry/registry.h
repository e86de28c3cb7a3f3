// The plugins of a session: found by their manifests, loaded when first asked for, each refusal kept with its reason.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/plugin.h"
#include "host/config/config.h"
#include "host/diagnostics/events.h"

namespace tenon::host {

/// A usable plugin. Lives as long as the registry; its address is stable.
struct Plugin {
  std::string name;
  std::string version;
  std::string build_id;
  std::string path;  // of the library; empty: registered from this process
  TenonKind kind = TENON_KIND_BACKEND;
  const TenonPlugin* descriptor = nullptr;  // lives as long as the process (in-process plugins: as long as their owner says)
  const TenonHost* table = nullptr;         // this plugin's own host table: logs and reports made through it carry its name
  std::shared_ptr<const class Probe> probe;          // that it passes with each set of options first; null: it is trusted
  std::shared_ptr<const class Isolation> isolation;  // where its claims and compiles run; null: in this process
  bool own = false;  // part of the installation: it is trusted to leave a thread as it found it

  /// The table to watch its calls with (see call_plugin), or null.
  const TenonHost* watched() const { return own ? nullptr : table; }
};

/// Finds and loads plugins. Thread-safe. Making one reads manifests only.
class Registry {
 public:
  Registry(const Config& config, Events& events);
  ~Registry();
  Registry(const Registry&) = delete;

  /// The backend of that name, loaded; null when it is unknown, disabled or refused: `why_not` says which.
  const Plugin* backend(std::string_view name);
  /// The plugin that offers the pass, loaded; null as above.
  const Plugin* pass(std::string_view pass_name);
  /// The frontend that reads files with the suffix of `path`, loaded; null as above. A driver has no library: `driver_for` finds it.
  const Plugin* frontend_for(std::string_view path);
  /// The program of the driver that reads files with that suffix ("python3", "-m", "tenon"); empty when there is none.
  std::vector<std::string> driver_for(std::string_view path) const;

  /// Adds a plugin of this process. Throws (invalid_argument, incompatible) for one that is ill-formed or whose name is taken.
  const Plugin& add(const TenonPlugin* in_process);

  /// Why a backend or pass cannot be had: its refusal, or that it is unknown, with the nearest known name.
  std::string why_no_backend(std::string_view name) const;
  std::string why_no_pass(std::string_view name) const;
  std::string why_no_frontend(std::string_view path) const;

  /// Known names, loaded or not, refused ones left out.
  std::vector<std::string> backend_names() const;
  std::vector<std::string> pass_names() const;

  /// Checks the names that the configuration mentions: backends, passes, sections and their keys. Throws (invalid_argument) naming
  /// file and line, with the nearest right word.
  void check(const Config& config) const;

  /// Checks the options that a compile gives a loaded backend against what its manifest declares. Throws (invalid_argument) as above.
  void check_options(const std::string& backend, const nlohmann::json& options) const;

  /// {"plugins": [{name, kind, state, path, reason, ...}], "directories": [...]}. Loads nothing.
  nlohmann::json describe() const;
  /// {"plugins": [...]} with the plugins of that name (of different kinds, or duplicates), and every decision that was made about
  /// each; loads them first. Throws (not_found) for an unknown name.
  nlohmann::json describe_one(std::string_view name);
  /// The passes of all usable plugins: name, plugin, meaning. Loads them.
  nlohmann::json describe_passes();

  /// What is kept of compiled code on disk: {directory, usable, entries, bytes, limit}, and "text" when it is not usable.
  nlohmann::json describe_cache() const;
  /// Removes all of it, and what the probe said of plugins; gives how many entries there were.
  std::uint64_t clear_cache();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::host
