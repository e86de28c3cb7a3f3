#include "plugin_folder.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "host/plugins/registry/registry.h"

namespace tenon::test {

PluginFolder::PluginFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tenon-plugins-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

PluginFolder::~PluginFolder() {
  std::error_code problem;
  std::filesystem::remove_all(path_, problem);
}

void PluginFolder::write(const std::string& name, std::string_view bytes) const { std::ofstream(path_ + "/" + name, std::ios::binary) << bytes; }

std::string PluginFolder::read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(path_ + "/" + name, std::ios::binary).rdbuf();
  return text.str();
}

void PluginFolder::add_library(const std::string& plugin, const std::string& as) const { write(as.empty() ? plugin + ".so" : as, library_bytes(plugin)); }

void PluginFolder::add_manifest(const std::string& name, const nlohmann::json& changes) const {
  nlohmann::json manifest = {{"manifest", 1}, {"name", name}, {"kind", "backend"}};
  manifest.update(changes);
  write(name + ".json", manifest.dump());
}

void PluginFolder::add(const std::string& plugin, const nlohmann::json& changes) const {
  add_library(plugin);
  add_manifest(plugin, changes);
}

host::Config PluginFolder::config() const {
  host::Config config;
  config.plugin_paths = {path_};
  config.cache = false;
  // Legitimate plugins must pass on a busy machine; tests of endless ones set a limit of their own.
  config.probe_seconds = 30;
  return config;
}

std::string library_bytes(const std::string& plugin) {
  std::ifstream file(TENON_BUILD_DIR "/broken/" + plugin + ".so", std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (text.str().empty()) throw std::runtime_error("there is no test plugin " + plugin);
  return text.str();
}

nlohmann::json verdict_on(const host::Config& config, const std::string& name) {
  host::Events events;
  host::Registry registry(config, events);
  return registry.describe_one(name)["plugins"].back();
}

}  // namespace tenon::test
