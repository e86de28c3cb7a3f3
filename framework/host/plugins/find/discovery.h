// Finds the plugins there are: reads the manifests of the ranked directories, loads nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/config/config.h"
#include "host/plugins/find/file.h"
#include "host/plugins/find/manifest.h"
#include "host/plugins/find/refusal.h"

namespace tenon::host {

enum class PluginState { found, loaded, refused, disabled };
const char* state_name(PluginState state);

/// A plugin that a manifest (or a library without one) announces.
struct Candidate {
  Manifest manifest;
  std::string directory;
  std::string source;  // "built-in", "TENON_PLUGIN_PATH", "plugins.paths", "user directory"
  Trust trust = Trust::checked;
  PluginState state = PluginState::found;
  Refusal refusal;                     // of a refused one
  std::vector<std::string> decisions;  // what was decided about it, in order, for people

  std::string path() const { return manifest.library.empty() ? std::string() : directory + "/" + manifest.library; }
  void decide(std::string text) { decisions.push_back(std::move(text)); }
  void refuse(const Refusal& why);
};

struct SearchedDirectory {
  std::string path;
  std::string source;
  Trust trust = Trust::checked;
  std::optional<Refusal> refusal;
};

struct Discovery {
  std::vector<std::unique_ptr<Candidate>> candidates;  // in the order of rank; duplicates are there, refused
  std::vector<SearchedDirectory> directories;
};

/// Searches the built-in directory, then those of TENON_PLUGIN_PATH, of the configuration, and the user's
/// (XDG_DATA_HOME/tenon/plugins). The first plugin of a kind and name counts; a later one is refused.
Discovery discover_plugins(const Config& config);

/// Whether the name matches one of the shell patterns.
bool matches_any(const std::string& name, const std::vector<std::string>& patterns);

}  // namespace tenon::host
