// The configuration of a session: every setting with its value, and where the value came from.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "host/machine/memory_pool.h"
#include "tenon/host.h"

namespace tenon::host {

/// Where a value was written: a file and line, an environment variable, an argument, or the default.
struct Origin {
  std::string text = "default";  // "tenon.toml:3", "TENON_BACKENDS", "argument"
};

/// The part of a configuration file (or of the overrides) that belongs to a plugin: the section with its name.
struct PluginSection {
  struct Entry {
    std::string json;  // the value
    Origin origin;
  };
  Origin origin;
  std::map<std::string, Entry> entries;
};

/// Settings. The default member values are the defaults; `flags.h` declares key, environment variable and meaning of each.
struct Config {
  // [compile]
  std::vector<std::string> backends;
  std::string fallback_backend;
  int artefact_limit = 8;
  bool warm_up = true;
  // [passes]
  std::vector<std::string> pipeline;
  std::vector<std::string> disabled_passes;
  bool verify_passes = false;
  std::string dump_passes_before;
  std::string dump_passes_after;
  std::string dump_directory;
  // [plugins]
  std::vector<std::string> plugin_paths;
  std::vector<std::string> select_plugins = {"*"};
  std::vector<std::string> disable_plugins;
  bool probe = true;
  double probe_seconds = 5;
  bool isolate = false;
  double isolate_seconds = 60;
  bool check_plugins = false;
  // [runtime]
  int threads = 0;
  std::size_t pool_bytes = pool_default_limit();
  bool profile = false;
  // [cache]
  bool cache = true;
  std::string cache_directory;
  std::size_t cache_bytes = std::size_t{1} << 30;
  // [diagnostics]
  std::vector<std::string> logs;
  std::string progress = "auto";
  std::string trace;
  std::string perf;

  /// Directories of TENON_PLUGIN_PATH; they rank before `plugin_paths`.
  std::vector<std::string> environment_plugin_paths;
  /// The configuration file that was read; empty for none.
  std::string file;
  /// Sections that are no settings of the host: one a plugin.
  std::map<std::string, PluginSection> sections;
  /// Where each setting came from, by key; defaults are absent.
  std::map<std::string, Origin> origins;

  /// Reads the shipped defaults, then the file (argument, TENON_CONFIG, working directory, user's directory: the first there is),
  /// then the environment, then the overrides. Throws (invalid_argument) for an unknown key, a wrong type or a file that is no
  /// TOML, naming file and line and the nearest right word; (not_found) for a file that was named and is not there.
  static Config load(const TenonSessionOptions* options);

  /// What is set in the environment and looks like a misspelt flag, as sentences with the right name.
  static std::vector<std::string> misspelt_variables();

  /// The section of a plugin as a JSON object; "{}" when there is none.
  std::string plugin_options(std::string_view plugin) const;
  Origin origin_of(std::string_view key) const;
  nlohmann::json to_json() const;
  /// Every flag with its value and origin, in the order of the table.
  nlohmann::json flags_json() const;
};

}  // namespace tenon::host
