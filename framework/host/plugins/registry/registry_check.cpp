// Checks the names in the configuration against the plugins there are.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "host/config/flags.h"
#include "host/config/installation.h"
#include "host/diagnostics/suggestion.h"
#include "host/plugins/registry/registry_state.h"

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

/// What a value of a declared type is, in words; empty for a type that is not known: then any value will do.
std::string words_of_type(const std::string& type) {
  constexpr std::pair<std::string_view, const char*> words[] = {{"boolean", "true or false"}, {"bool", "true or false"}, {"integer", "an integer"}, {"number", "a number"},
                                                                {"text", "text"},             {"list", "a list"},        {"object", "an object"}};
  for (const auto& [name, meaning] : words)
    if (type == name) return meaning;
  return {};
}

bool is_of_type(const nlohmann::json& value, const std::string& type) {
  if (type == "boolean" || type == "bool") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "text") return value.is_string();
  if (type == "list") return value.is_array();
  return type != "object" || value.is_object();
}

/// An option of a plugin against what its manifest declares, where it does.
void check_option(const Manifest& manifest, const std::string& key, const nlohmann::json& value, const Origin& origin) {
  if (!manifest.options) return;
  const auto declared = manifest.options->find(key);
  if (declared == manifest.options->end()) {
    Words keys;
    for (const auto& [known, type] : *manifest.options) keys.push_back(known);
    throw_unknown(origin, fmt::format("key in [{}]", manifest.name), key, keys, "");
  }
  if (!is_of_type(value, declared->second))
    throw Exception(Code::invalid_argument, fmt::format("{}: {}.{} must be {}, not: {}", origin.text, manifest.name, key, words_of_type(declared->second), value.dump()));
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
  const Words progress = {"auto", "always", "never"};
  if (!contains(progress, config.progress)) throw_unknown(config.origin_of("diagnostics.progress"), "word for diagnostics.progress", config.progress, progress, "");
  const Words backends = state_->names(TENON_KIND_BACKEND);
  for (const std::string& name : config.backends) check_name("compile.backends", "backend", name, backends);
  check_name("compile.fallback", "backend", config.fallback_backend, backends);

  // A name that no plugin has may be meant for another machine: it is told where it looks like a slip.
  Words plugins;
  for (const Entry& entry : entries) plugins.push_back(entry.candidate->manifest.name);
  const auto check_filter = [&](const char* key, const std::string& name) {
    const std::string nearest = is_pattern(name) || contains(plugins, name) ? std::string() : nearest_word(name, plugins);
    if (!nearest.empty()) state_->events.warn_once("plugins", fmt::format("{}: {} names no plugin: '{}'; did you mean '{}'?", config.origin_of(key).text, key, name, nearest));
  };
  for (const std::string& name : config.select_plugins) check_filter("plugins.select", name);
  for (const std::string& name : config.disable_plugins) check_filter("plugins.disable", name);

  // What a library without a manifest offers is known when it is loaded.
  const bool all_known = std::all_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.candidate->manifest.kind.has_value(); });
  const Words passes = state_->passes();
  for (const std::string& name : config.pipeline)
    if (all_known) check_name("passes.pipeline", "pass", name, passes);
  for (const std::string& name : config.disabled_passes)
    if (all_known && !is_pattern(name)) check_name("passes.disable", "pass", name, passes);

  for (const auto& [name, section] : config.sections) {
    check_section_name(name, section, section_names(entries), more);
    for (const Entry& entry : entries)
      for (const auto& [key, given] : section.entries)
        if (entry.candidate->manifest.name == name) check_option(entry.candidate->manifest, key, nlohmann::json::parse(given.json), given.origin);
  }
}

void Registry::check_options(const std::string& backend, const nlohmann::json& options) const {
  TENON_USER_CHECK(options.is_object(), "options: those of '{}' must be an object, not: {}", backend, options.dump());
  const std::lock_guard lock(state_->mutex);
  for (const Entry& entry : state_->entries)
    for (const auto& [key, value] : options.items())
      if (entry.candidate->manifest.name == backend && entry.plugin) check_option(entry.candidate->manifest, key, value, {"options"});
}

}  // namespace tenon::host
