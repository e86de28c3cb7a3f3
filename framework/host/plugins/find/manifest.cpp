#include "host/plugins/find/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/plugins/find/refusal.h"

namespace tenon::host {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 8;
constexpr int kNewestManifest = 1;

json parse_bounded(std::string_view text) {
  // The callback runs before a level is entered, so a deep document is left early.
  const auto bounded = [](int depth, json::parse_event_t event, json&) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start)
      if (depth >= kMaxDepth) throw Refused("manifest_malformed", "the manifest is nested more than {} levels deep", kMaxDepth);
    return true;
  };
  try {
    return json::parse(text, bounded);
  } catch (const json::exception& problem) {
    throw Refused("manifest_malformed", "the manifest is no JSON: {}", problem.what());
  }
}

std::string text_of(const json& document, const char* key, bool required = false) {
  const auto found = document.find(key);
  if (found == document.end()) {
    if (required) throw Refused("manifest_invalid", "the manifest lacks \"{}\"", key);
    return {};
  }
  if (!found->is_string()) throw Refused("manifest_invalid", "\"{}\" of the manifest must be text, not {}", key, found->dump());
  return found->get<std::string>();
}

std::vector<std::string> list_of(const json& document, const char* key) {
  std::vector<std::string> result;
  const auto found = document.find(key);
  if (found == document.end()) return result;
  if (!found->is_array()) throw Refused("manifest_invalid", "\"{}\" of the manifest must be a list of text", key);
  for (const json& item : *found) {
    if (!item.is_string()) throw Refused("manifest_invalid", "\"{}\" of the manifest must be a list of text", key);
    result.push_back(item.get<std::string>());
  }
  return result;
}

TenonKind kind_of(const std::string& word) {
  for (const TenonKind kind : {TENON_KIND_FRONTEND, TENON_KIND_PASSES, TENON_KIND_BACKEND})
    if (word == kind_name(kind)) return kind;
  throw Refused("manifest_invalid", "\"kind\" of the manifest must be frontend, passes or backend, not \"{}\"", word);
}

bool is_plugin_name(std::string_view name) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto more = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 64 && letter(name.front()) && std::all_of(name.begin(), name.end(), more);
}

std::optional<std::map<std::string, std::string>> options_of(const json& document) {
  const auto found = document.find("options");
  if (found == document.end()) return std::nullopt;
  if (!found->is_object()) throw Refused("manifest_invalid", "\"options\" of the manifest must be an object");
  std::map<std::string, std::string> result;
  for (const auto& [key, option] : found->items())
    result[key] = option.is_object() && option.contains("type") && option["type"].is_string() ? option["type"].get<std::string>() : "";
  return result;
}

std::optional<std::uint64_t> size_of_library(const json& document) {
  const auto found = document.find("size");
  if (found == document.end()) return std::nullopt;
  if (!found->is_number_unsigned()) throw Refused("manifest_invalid", "\"size\" of the manifest must be a number of bytes, not {}", found->dump());
  return found->get<std::uint64_t>();
}

void read_abi(const json& document, Manifest& manifest) {
  const auto found = document.find("abi");
  if (found == document.end()) return;
  const auto end = [&](const char* key) {
    if (!found->is_object() || !found->contains(key) || !(*found)[key].is_number_unsigned())
      throw Refused("manifest_invalid", "\"abi\" of the manifest must be {{\"oldest\": number, \"newest\": number}}, not {}", found->dump());
    return static_cast<std::uint32_t>(std::min<std::uint64_t>((*found)[key].get<std::uint64_t>(), UINT32_MAX));
  };
  manifest.abi_oldest = end("oldest");
  manifest.abi_newest = end("newest");
}

void check_version(const json& document) {
  if (!document.is_object()) throw Refused("manifest_invalid", "the manifest must be a JSON object");
  const auto version = document.find("manifest");
  if (version == document.end() || !version->is_number_integer())
    throw Refused("manifest_invalid", "the manifest lacks \"manifest\": {}", kNewestManifest);
  if (version->get<std::int64_t>() < 1 || version->get<std::int64_t>() > kNewestManifest)
    throw Refused("manifest_invalid", "the manifest has version {}; known: 1 to {}", version->dump(), kNewestManifest);
}

}  // namespace

Manifest parse_manifest(std::string_view text) {
  if (text.size() > kMaxManifestBytes) throw Refused("manifest_too_large", "a manifest may have {} bytes", kMaxManifestBytes);
  const json document = parse_bounded(text);
  check_version(document);
  Manifest result;
  result.name = text_of(document, "name", true);
  if (!is_plugin_name(result.name))
    throw Refused("manifest_invalid", "a plugin's name has the form [a-z][a-z0-9_]*, not: \"{}\"", result.name);
  result.kind = kind_of(text_of(document, "kind", true));
  result.program = list_of(document, "program");
  result.library = text_of(document, "library");
  if (result.library.empty() && result.program.empty()) result.library = result.name + ".so";
  if (result.library.find('/') != std::string::npos || result.library == "..")
    throw Refused("path_escapes", "\"library\" of the manifest must be a file name in its own directory, not: {}", result.library);
  result.version = text_of(document, "version");
  result.description = text_of(document, "description");
  result.size = size_of_library(document);
  result.sha256 = text_of(document, "sha256");
  result.passes = list_of(document, "passes");
  if (result.passes.empty() && result.kind == TENON_KIND_PASSES) result.passes = {result.name};
  result.suffixes = list_of(document, "suffixes");
  result.provides = list_of(document, "provides");
  result.options = options_of(document);
  read_abi(document, result);
  return result;
}

Manifest manifest_of_bare_library(std::string_view file_name) {
  Manifest result;
  result.library = file_name;
  std::string_view stem = file_name.substr(0, file_name.find('.'));
  if (stem.substr(0, 3) == "lib" && stem.size() > 3) stem.remove_prefix(3);
  result.name = stem;
  if (!is_plugin_name(result.name))
    throw Refused("manifest_invalid", "there is no manifest, and the file's name is none for a plugin ([a-z][a-z0-9_]*): {}", file_name);
  return result;
}

void check_abi_range(const Manifest& manifest) {
  if (manifest.abi_newest == 0) return;
  if (manifest.abi_oldest > TENON_ABI_NEWEST)
    throw Refused("abi_too_new", "needs ABI {} to {}; this host offers {} to {}: a newer Tenon is needed", manifest.abi_oldest, manifest.abi_newest,
                  TENON_ABI_OLDEST, TENON_ABI_NEWEST);
  if (manifest.abi_newest < TENON_ABI_OLDEST)
    throw Refused("abi_too_old", "needs ABI {} to {}; this host offers {} to {}: build the plugin with a newer SDK", manifest.abi_oldest,
                  manifest.abi_newest, TENON_ABI_OLDEST, TENON_ABI_NEWEST);
}

const char* kind_name(TenonKind kind) {
  switch (kind) {
    case TENON_KIND_FRONTEND: return "frontend";
    case TENON_KIND_PASSES: return "passes";
    case TENON_KIND_BACKEND: return "backend";
  }
  return "unknown";
}

}  // namespace tenon::host
