// Checks the names in the configuration against the plugins there are.
#include <algorithm>

#include "core/base/error.h"
#include "host/diagnostics/suggestion.h"
#include "host/driver/flags.h"
#include "host/plugins/installation.h"
#include "host/plugins/registry_state.h"

namespace tenon::host {
namespace {

using Words = std::vector<std::string>;

bool is_pattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

[[noreturn]] void throw_unknown(const Origin& origin, const std::string& what, std::string_view name, const Words& known, const std::string& more) {
  throw Exception(Code::invalid_argument, fmt::format("{}: unknown {} '{}'{}{}", origin.text, what, name, suggestion_text(name, known), more));
}

/// The shipped defaults name plugins of this package that a smaller installation may lack: what is missing is told when it is used.
bool is_shipped(const Origin& origin) {
  const std::string& defaults = installation().defaults_file;
  return !defaults.empty() && origin.text.rfind(defaults + ":", 0) == 0;
}

/// A plugin that was refused is no unknown word: why it is not there is told when it is used.
bool is_refused(const std::vector<Entry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    const Candidate& candidate = *entry.candidate;
    return !candidate.refusal.reason.empty() && (candidate.manifest.name == name || contains(candidate.manifest.passes, name));
  });
}

/// The names of sections: those of plugins, and, for suggestions, the host's own.
Words section_names(const std::vector<Entry>& entries) {
  Words names;
  for (const Entry& entry : entries) {
    const Manifest& manifest = entry.candidate->manifest;
    names.push_back(manifest.name);
    names.insert(names.end(), manifest.provides.begin(), manifest.provides.end());
  }
  return names;
}

void check_section_name(const std::string& name, const PluginSection& section, Words known, const std::string& more) {
  if (contains(known, name)) return;
  for (const Flag& flag : all_flags())
    if (!flag.section().empty() && !contains(known, flag.section())) known.push_back(flag.section());
  throw_unknown(section.origin, "section", name, known, more);
}

/// Keys of a plugin's section against the options that its manifest declares, where it does.
void check_section_keys(const std::string& name, const PluginSection& section, const Manifest& manifest) {
  if (manifest.name != name || !manifest.options) return;
  Words keys;
  for (const auto& [key, type] : *manifest.options) keys.push_back(key);
  for (const auto& [key, given] : section.entries)
    if (!manifest.options->count(key)) throw_unknown(given.origin, fmt::format("key in [{}]", name), key, keys, "");
}

}  // namespace

void Registry::check(const Config& config) const {
  const std::lock_guard lock(state_->mutex);
  const std::vector<Entry>& entries = state_->entries;
  const std::string more = state_->refused_directories();
  const auto check_name = [&](const char* key, const char* what, const std::string& name, const Words& known) {
    const Origin origin = config.origin_of(key);
    if (name.empty() || is_shipped(origin) || contains(known, name) || is_refused(entries, name)) return;
    throw_unknown(origin, what, name, known, more);
  };
  const Words backends = state_->names(TENON_KIND_BACKEND);
  for (const std::string& name : config.backends) check_name("compile.backends", "backend", name, backends);
  check_name("compile.fallback", "backend", config.fallback_backend, backends);

  // What a library without a manifest offers is known when it is loaded.
  const bool all_known = std::all_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.candidate->manifest.kind.has_value(); });
  const Words passes = state_->passes();
  for (const std::string& name : config.pipeline)
    if (all_known) check_name("passes.pipeline", "pass", name, passes);
  for (const std::string& name : config.disabled_passes)
    if (all_known && !is_pattern(name)) check_name("passes.disable", "pass", name, passes);

  for (const auto& [name, section] : config.sections) {
    check_section_name(name, section, section_names(entries), more);
    for (const Entry& entry : entries) check_section_keys(name, section, entry.candidate->manifest);
  }
}

}  // namespace tenon::host
