#include "host/driver/diagnosis.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "host/config/installation.h"
#include "host/driver/session.h"
#include "host/machine/processor.h"
#include "host/machine/threads.h"
#include "tenon/host.h"

namespace tenon::host {
namespace {

using nlohmann::json;

/// "backend 0.1.0", and why it is not used or brings no device.
std::string words_of(const json& plugin) {
  std::string words = fmt::format("{} {}, {}", plugin.value("kind", ""), plugin.value("version", ""), plugin.value("state", ""));
  if (plugin.contains("reason")) words += fmt::format(": {}: {}", plugin.value("reason", ""), plugin.value("text", ""));
  for (const json& decision : plugin.value("decisions", json::array()))
    if (decision.get<std::string>().starts_with("brings")) words += "; " + decision.get<std::string>();
  return words;
}

/// Where a plugin comes from that is not this installation's.
std::string origin_of(const json& plugin) {
  if (plugin.value("source", "") == "built-in") return "";
  const std::string path = plugin.value("path", "");
  return path.empty() ? " (of this process)" : " (" + path + ")";
}

json plugins_of(Session& session) {
  json plugins = json::object();
  const json all = session.query("plugins");
  for (const json& plugin : all["plugins"]) {
    const std::string name = plugin.value("name", "?");
    const json looked_at = plugin.value("kind", "") == "backend" ? session.query("plugin:" + name)["plugins"] : json::array({plugin});
    for (const json& one : looked_at) plugins[name + origin_of(one)] = words_of(one);
  }
  for (const json& directory : all["directories"])
    if (directory.contains("reason")) plugins[directory.value("path", "?")] = fmt::format("not searched: {}: {}", directory.value("reason", ""), directory.value("text", ""));
  return plugins;
}

json cache_of(Session& session) {
  const json cache = session.query("cache");
  if (!cache["usable"].get<bool>()) return {{"not used", cache.value("text", "")}};
  return {{"directory", cache["directory"]}, {"holds", fmt::format("{} entries, {} of at most {} bytes", cache["entries"].get<std::uint64_t>(), cache["bytes"].get<std::uint64_t>(), cache["limit"].get<std::uint64_t>())}};
}

json settings_of(const Config& config) {
  json settings = json::object();
  for (const json& flag : config.flags_json())
    if (flag["origin"] != "default" && flag["origin"].get<std::string>().find(installation().defaults_file) == std::string::npos)
      settings[flag["key"].get<std::string>()] = fmt::format("{} ({})", flag["value"].dump(), flag["origin"].get<std::string>());
  return settings;
}

}  // namespace

json diagnosis(Session& session) {
  const Processor found = processor();
  return {{"tenon", {{"version", tenon_version()}, {"plugins in", installation().plugin_directory}}},
          {"machine", {{"system", operating_system()}, {"processor", found.name}, {"features", found.features}, {"processors", std::to_string(std::thread::hardware_concurrency())}, {"threads", std::to_string(thread_count())}}},
          {"plugins", plugins_of(session)},
          {"cache", cache_of(session)},
          {"settings", settings_of(session.config)}};
}

}  // namespace tenon::host
