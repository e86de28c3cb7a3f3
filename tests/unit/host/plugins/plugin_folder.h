// A plugin directory for one test.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "host/config/config.h"

namespace tenon::test {

/// A temporary directory that only this user may write, removed at the end.
class PluginFolder {
 public:
  PluginFolder();
  ~PluginFolder();
  PluginFolder(const PluginFolder&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const;
  std::string read(const std::string& name) const;
  /// Copies a library of tests/plugins/broken, under that name.
  void add_library(const std::string& plugin, const std::string& as = {}) const;
  /// Writes a manifest for a backend; `changes` are laid over it.
  void add_manifest(const std::string& name, const nlohmann::json& changes = nlohmann::json::object()) const;
  /// Both.
  void add(const std::string& plugin, const nlohmann::json& changes = nlohmann::json::object()) const;

  /// A configuration with this directory and without a cache.
  host::Config config() const;

 private:
  std::string path_;
};

/// The bytes of a library of tests/plugins/broken.
std::string library_bytes(const std::string& plugin);

/// What a registry over the folder says about a plugin after trying to load it; of several of that name the last.
nlohmann::json verdict_on(const host::Config& config, const std::string& name);

}  // namespace tenon::test
