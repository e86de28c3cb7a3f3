#include "host/plugins/find/discovery.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "host/config/flags.h"
#include "host/config/installation.h"

namespace tenon::host {
namespace {

constexpr std::size_t kMaxManifests = 1024;  // of one directory

std::vector<SearchedDirectory> ranked_directories(const Config& config) {
  std::vector<SearchedDirectory> result;
  if (const std::string& own = installation().plugin_directory; !own.empty()) result.push_back({own, "built-in", Trust::own, {}});
  const auto add = [&](const std::string& path, const char* source) {
    result.push_back({std::filesystem::absolute(path).lexically_normal().string(), source, Trust::checked, {}});
  };
  for (const std::string& path : config.environment_plugin_paths) add(path, "TENON_PLUGIN_PATH");
  for (const std::string& path : config.plugin_paths) add(path, "plugins.paths");
  const auto data = environment("XDG_DATA_HOME");
  const auto home = environment("HOME");
  const std::string user = data && !data->empty() ? *data : home && !home->empty() ? *home + "/.local/share" : "";
  std::error_code problem;
  if (!user.empty() && std::filesystem::is_directory(user + "/tenon/plugins", problem)) add(user + "/tenon/plugins", "user directory");
  return result;
}

/// A manifest that is refused still makes a candidate, under the name that its file promises.
std::unique_ptr<Candidate> candidate_of(const Descriptor& directory, const SearchedDirectory& searched, const std::string& file) {
  auto candidate = std::make_unique<Candidate>();
  candidate->directory = searched.path;
  candidate->source = searched.source;
  candidate->trust = searched.trust;
  candidate->manifest.name = std::filesystem::path(file).stem().string();
  try {
    const Descriptor manifest = open_file_in(directory, file, searched.trust);
    const std::uint64_t size = identity_of(manifest.get()).size;
    if (size > kMaxManifestBytes) throw Refused("manifest_too_large", "the manifest has {} bytes; {} are allowed", size, kMaxManifestBytes);
    candidate->manifest = parse_manifest(read_all(manifest.get(), kMaxManifestBytes));
    candidate->decide(fmt::format("found by its manifest {}/{} ({})", searched.path, file, searched.source));
    check_abi_range(candidate->manifest);
  } catch (const Refused& refused) {
    candidate->refuse(refused.refusal());
  }
  return candidate;
}

std::unique_ptr<Candidate> bare_candidate(const SearchedDirectory& searched, const std::string& file) {
  auto candidate = std::make_unique<Candidate>();
  candidate->directory = searched.path;
  candidate->source = searched.source;
  candidate->trust = searched.trust;
  candidate->manifest.name = std::filesystem::path(file).stem().string();
  candidate->manifest.library = file;
  try {
    candidate->manifest = manifest_of_bare_library(file);
    candidate->decide(fmt::format("found as a library without a manifest: {}/{} ({})", searched.path, file, searched.source));
  } catch (const Refused& refused) {
    candidate->refuse(refused.refusal());
  }
  return candidate;
}

void search(SearchedDirectory& searched, std::set<std::pair<dev_t, ino_t>>& seen, Discovery& discovery) {
  try {
    const Descriptor directory = open_directory(searched.path, searched.trust);
    const FileIdentity identity = identity_of(directory.get());
    if (!seen.insert({identity.device, identity.inode}).second) return;
    std::set<std::string> claimed;
    std::vector<std::string> manifests = names_in(directory, ".json");
    if (manifests.size() > kMaxManifests) manifests.resize(kMaxManifests);
    for (const std::string& file : manifests) {
      discovery.candidates.push_back(candidate_of(directory, searched, file));
      claimed.insert(discovery.candidates.back()->manifest.library);
      claimed.insert(std::filesystem::path(file).stem().string() + ".so");
    }
    // Beside our own plugins lie only libraries that have a manifest, or are none.
    if (searched.trust == Trust::own) return;
    for (const std::string& file : names_in(directory, ".so"))
      if (!claimed.count(file)) discovery.candidates.push_back(bare_candidate(searched, file));
  } catch (const Refused& refused) {
    searched.refusal = refused.refusal();
  }
}

bool same_plugin(const Candidate& a, const Candidate& b) {
  return a.manifest.name == b.manifest.name && (!a.manifest.kind || !b.manifest.kind || a.manifest.kind == b.manifest.kind);
}

void refuse_duplicates(Discovery& discovery) {
  auto& all = discovery.candidates;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i]->state != PluginState::found) continue;
    const auto first = std::find_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i), [&](const auto& earlier) {
      return earlier->state == PluginState::found && same_plugin(*earlier, *all[i]);
    });
    if (first != all.begin() + static_cast<std::ptrdiff_t>(i))
      all[i]->refuse({"duplicate_name", fmt::format("has the name of another plugin, which ranks higher: {}", (*first)->path())});
  }
}

void apply_patterns(const Config& config, Candidate& candidate) {
  const std::string& name = candidate.manifest.name;
  if (candidate.state != PluginState::found) return;
  const bool selected = matches_any(name, config.select_plugins);
  if (selected && !matches_any(name, config.disable_plugins)) return;
  candidate.state = PluginState::disabled;
  const char* key = selected ? "plugins.disable" : "plugins.select";
  candidate.refusal = {"disabled", fmt::format("is left out by {} ({})", key, config.origin_of(key).text)};
  candidate.decide(candidate.refusal.text);
}

}  // namespace

const char* state_name(PluginState state) {
  switch (state) {
    case PluginState::found: return "found";
    case PluginState::loaded: return "loaded";
    case PluginState::refused: return "refused";
    case PluginState::disabled: return "disabled";
  }
  return "unknown";
}

void Candidate::refuse(const Refusal& why) {
  state = PluginState::refused;
  refusal = why;
  decide(fmt::format("refused ({}): {}", why.reason, why.text));
}

Discovery discover_plugins(const Config& config) {
  Discovery discovery;
  discovery.directories = ranked_directories(config);
  std::set<std::pair<dev_t, ino_t>> seen;
  for (SearchedDirectory& directory : discovery.directories) search(directory, seen, discovery);
  for (const auto& candidate : discovery.candidates) apply_patterns(config, *candidate);
  refuse_duplicates(discovery);
  return discovery;
}

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

}  // namespace tenon::host
