// What the registry says about its plugins: lists, reasons, and errors about names.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "host/diagnostics/suggestion.h"
#include "host/plugins/registry/backend_instance.h"
#include "host/plugins/registry/registry_state.h"

namespace tenon::host {
namespace {

using nlohmann::json;

json flag_list(std::uint32_t flags) {
  constexpr std::pair<std::uint32_t, const char*> names[] = {{TENON_DYNAMIC_SHAPES, "dynamic_shapes"},       {TENON_COMPILE_REENTRANT, "compile_reentrant"},
                                                             {TENON_EXECUTE_REENTRANT, "execute_reentrant"}, {TENON_STRIDED_INPUTS, "strided_inputs"},
                                                             {TENON_CALLING_THREAD, "calling_thread"},       {TENON_ASK_ONCE, "ask_once"},
                                                             {TENON_BAKED_CONSTANTS, "baked_constants"}};
  json result = json::array();
  for (const auto& [bit, name] : names)
    if (flags & bit) result.push_back(name);
  return result;
}

json description_of(const Entry& entry) {
  const Candidate& candidate = *entry.candidate;
  const Manifest& manifest = candidate.manifest;
  json result = {{"name", manifest.name},       {"kind", manifest.kind ? kind_name(*manifest.kind) : "unknown"}, {"state", state_name(candidate.state)},
                 {"source", candidate.source},  {"path", candidate.path()},                                     {"version", manifest.version},
                 {"description", manifest.description}};
  if (!manifest.passes.empty()) result["passes"] = manifest.passes;
  if (!manifest.suffixes.empty()) result["suffixes"] = manifest.suffixes;
  if (!manifest.program.empty()) result["program"] = manifest.program;
  if (!manifest.provides.empty()) result["provides"] = manifest.provides;
  if (!candidate.refusal.reason.empty()) {
    result["reason"] = candidate.refusal.reason;
    result["text"] = candidate.refusal.text;
  }
  if (entry.plugin) {
    result["build_id"] = entry.plugin->build_id;
    result["abi"] = entry.plugin->descriptor->abi;
    if (manifest.description.empty()) result["description"] = entry.plugin->descriptor->description;
    if (const TenonBackend* backend = entry.plugin->descriptor->backend) {
      result["devices"] = served_devices(*backend);
      result["flags"] = flag_list(backend->flags);
    }
  }
  return result;
}

/// The refusals of plugins that would have answered; empty when there are none.
template <class Wanted>
std::string refusals(const std::vector<Entry>& entries, const Wanted& wanted) {
  std::string text;
  for (const Entry& entry : entries) {
    const Candidate& candidate = *entry.candidate;
    if (candidate.refusal.reason.empty() || !wanted(candidate.manifest)) continue;
    if (!text.empty()) text += "; ";
    text += fmt::format("plugin '{}' is not used ({}): {}: {}", candidate.manifest.name, candidate.refusal.reason, candidate.refusal.text,
                        candidate.path().empty() ? candidate.directory : candidate.path());
  }
  return text;
}

}  // namespace

std::string Registry::why_no_backend(std::string_view name) const {
  const std::lock_guard lock(state_->mutex);
  const std::string refused = refusals(state_->entries, [&](const Manifest& m) { return m.name == name && (!m.kind || m.kind == TENON_KIND_BACKEND); });
  if (!refused.empty()) return refused;
  for (const Entry& entry : state_->entries) {
    const Manifest& manifest = entry.candidate->manifest;
    if (manifest.name == name && manifest.kind) return fmt::format("plugin '{}' is no backend, its kind is {}", name, kind_name(*manifest.kind));
    if (contains(manifest.provides, name)) return fmt::format("backend '{}' exists only in a program of the driver '{}'", name, manifest.name);
  }
  return fmt::format("unknown backend '{}'{}{}", name, suggestion_text(name, state_->names(TENON_KIND_BACKEND)), state_->refused_directories());
}

std::string Registry::why_no_pass(std::string_view name) const {
  const std::lock_guard lock(state_->mutex);
  const std::string refused = refusals(state_->entries, [&](const Manifest& m) { return contains(m.passes, name); });
  if (!refused.empty()) return fmt::format("pass '{}' is not there: {}", name, refused);
  return fmt::format("unknown pass '{}'{}{}", name, suggestion_text(name, state_->passes()), state_->refused_directories());
}

std::string Registry::why_no_frontend(std::string_view path) const {
  const std::lock_guard lock(state_->mutex);
  const auto reads = [&](const Manifest& m) {
    return std::any_of(m.suffixes.begin(), m.suffixes.end(), [&](const std::string& s) { return path.size() >= s.size() && path.substr(path.size() - s.size()) == s; });
  };
  const std::string refused = refusals(state_->entries, reads);
  if (!refused.empty()) return fmt::format("no frontend reads '{}': {}", path, refused);
  std::vector<std::string> suffixes;
  for (const Entry& entry : state_->entries)
    suffixes.insert(suffixes.end(), entry.candidate->manifest.suffixes.begin(), entry.candidate->manifest.suffixes.end());
  return fmt::format("no frontend reads '{}'; known endings: {}{}", path, suffixes.empty() ? "none" : joined(suffixes), state_->refused_directories());
}

json Registry::describe() const {
  const std::lock_guard lock(state_->mutex);
  json plugins = json::array();
  for (const Entry& entry : state_->entries) plugins.push_back(description_of(entry));
  json directories = json::array();
  for (const SearchedDirectory& directory : state_->directories) {
    json row = {{"path", directory.path}, {"source", directory.source}, {"state", directory.refusal ? "refused" : "searched"}};
    if (directory.refusal) row.update({{"reason", directory.refusal->reason}, {"text", directory.refusal->text}});
    directories.push_back(std::move(row));
  }
  return {{"plugins", plugins}, {"directories", directories}};
}

json Registry::describe_one(std::string_view name) {
  const std::lock_guard lock(state_->mutex);
  json plugins = json::array();
  std::vector<std::string> known;
  for (Entry& entry : state_->entries) {
    known.push_back(entry.candidate->manifest.name);
    if (known.back() != name) continue;
    if (!entry.candidate->manifest.library.empty()) state_->load(entry);
    json description = description_of(entry);
    description["decisions"] = entry.candidate->decisions;
    plugins.push_back(std::move(description));
  }
  if (plugins.empty())
    throw Exception(Code::not_found, fmt::format("unknown plugin '{}'{}{}", name, suggestion_text(name, known), state_->refused_directories()));
  return {{"plugins", plugins}};
}

json Registry::describe_passes() {
  const std::lock_guard lock(state_->mutex);
  json result = json::array();
  for (Entry& entry : state_->entries) {
    if (entry.candidate->manifest.kind && entry.candidate->manifest.kind != TENON_KIND_PASSES) continue;
    const Plugin* plugin = state_->load(entry);
    if (!plugin || plugin->kind != TENON_KIND_PASSES) continue;
    const TenonPassTable& table = *plugin->descriptor->passes;
    for (std::size_t i = 0; i < table.count; ++i) result.push_back({{"name", table.names[i]}, {"plugin", plugin->name}, {"meaning", table.docs[i]}});
  }
  return result;
}

}  // namespace tenon::host
