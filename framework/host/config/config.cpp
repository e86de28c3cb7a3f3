#include "host/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "host/config/config_file.h"
#include "host/config/flags.h"
#include "host/config/given_names.h"
#include "host/config/installation.h"
#include "host/config/setting_value.h"
#include "host/diagnostics/log.h"
#include "host/diagnostics/suggestion.h"

namespace tenon::host {
namespace {

/// The file to read: the first of the search order that exists. A file that was named must exist.
std::string find_file(const TenonSessionOptions* options, Origin& origin) {
  const char* argument = options ? options->config_file : nullptr;
  origin.text = "argument";
  if (argument && *argument) return argument;
  if (const auto variable = environment("TENON_CONFIG"); variable && !variable->empty()) {
    origin.text = "TENON_CONFIG";
    return *variable;
  }
  origin.text = "found";
  for (const std::string& candidate : configuration_candidates())
    if (file_exists(candidate)) return candidate;
  return {};
}

void read_environment(Config& config) {
  for (const Flag& flag : all_flags()) {
    const auto value = environment(flag.environment);
    if (!value || value->empty() || flag.section().empty()) continue;
    const Origin origin{flag.environment};
    if (std::string_view(flag.key) == "plugins.paths") {
      config.environment_plugin_paths = value_from_text(flag, *value, ':').list;
    } else {
      store(config, flag, value_from_text(flag, *value), origin);
    }
  }
}

void apply_override(Config& config, std::string_view text) {
  const Origin origin{"argument"};
  const std::size_t equals = text.find('=');
  const std::size_t dot = text.find('.');
  if (equals == std::string_view::npos || dot == std::string_view::npos || dot > equals)
    throw Exception(Code::invalid_argument, fmt::format("argument: a setting is written section.key=value, not: {}", text));
  const std::string key(text.substr(0, equals));
  const std::string_view value = text.substr(equals + 1);
  if (const Flag* flag = find_flag(key)) return store(config, *flag, value_from_text(*flag, value), origin);
  const std::string section = key.substr(0, dot);
  if (is_host_section(section)) throw_unknown_key(section, key.substr(dot + 1), origin);
  config.sections[section].origin = origin;
  config.sections[section].entries[key.substr(dot + 1)] = {json_from_text(value), origin};
}

/// Names in the configuration that are checked at once, for they need no plugin.
void check_log_names(const Config& config) {
  try {
    Log().set(joined(config.logs));
  } catch (const Exception& problem) {
    throw Exception(problem.code(), fmt::format("{}: {}", config.origin_of("diagnostics.logs").text, problem.what()));
  }
}

nlohmann::json value_json(const Config& config, const Flag& flag) {
  return std::visit([&](auto member) { return nlohmann::json(config.*member); }, flag.member);
}

}  // namespace

Config Config::load(const TenonSessionOptions* options) {
  Config config;
  if (const std::string defaults = installation().defaults_file; !defaults.empty()) read_config_file(config, defaults);
  Origin origin;
  if (const std::string file = find_file(options, origin); !file.empty()) {
    read_config_file(config, file);
    config.file = file;
    config.origins["config"] = origin;
  }
  read_environment(config);
  if (options)
    for (const std::string& setting : given_names(options->overrides, options->override_count, "overrides")) apply_override(config, setting);
  check_log_names(config);
  return config;
}

std::vector<std::string> Config::misspelt_variables() {
  constexpr std::string_view kPrefix = "TENON_";
  // A name may be meant that is made of the setting's key: TENON_CACHE_DIRECTORY for cache.directory.
  std::vector<std::string> known, right;
  const auto add = [&](std::string name, const Flag& flag) {
    known.push_back(std::move(name));
    right.emplace_back(flag.environment);
  };
  for (const Flag& flag : all_flags()) add(std::string(flag.environment).substr(kPrefix.size()), flag);
  for (const Flag& flag : all_flags())
    if (!flag.section().empty()) add(flag.section() + "_" + flag.name(), flag);

  std::vector<std::string> found;
  for (const std::string& name : variables(kPrefix)) {
    const auto is_flag = [&](const Flag& flag) { return flag.environment == name; };
    if (std::ranges::any_of(all_flags(), is_flag)) continue;
    const std::string nearest = nearest_word(std::string_view(name).substr(kPrefix.size()), known);
    if (nearest.empty()) continue;
    found.push_back(fmt::format("the environment variable {} is none that is read; did you mean '{}'?", name, right[static_cast<std::size_t>(std::ranges::find(known, nearest) - known.begin())]));
  }
  return found;
}

std::string Config::plugin_options(std::string_view plugin) const {
  nlohmann::json options = nlohmann::json::object();
  if (const auto section = sections.find(std::string(plugin)); section != sections.end())
    for (const auto& [key, entry] : section->second.entries) options[key] = nlohmann::json::parse(entry.json);
  return options.dump();
}

Origin Config::origin_of(std::string_view key) const {
  const auto found = origins.find(std::string(key));
  return found == origins.end() ? Origin{} : found->second;
}

nlohmann::json Config::to_json() const {
  nlohmann::json result = nlohmann::json::object();
  for (const Flag& flag : all_flags()) {
    if (flag.section().empty()) {
      result[flag.key] = value_json(*this, flag);
    } else {
      result[flag.section()][flag.name()] = value_json(*this, flag);
    }
  }
  for (const auto& [name, section] : sections) result[name] = nlohmann::json::parse(plugin_options(name));
  return result;
}

nlohmann::json Config::flags_json() const {
  static const Config defaults;
  nlohmann::json result = nlohmann::json::array();
  for (const Flag& flag : all_flags()) {
    nlohmann::json row = {{"name", flag.name()},      {"section", flag.section()},         {"key", flag.key},
                          {"environment", flag.environment}, {"type", flag.type()},        {"meaning", flag.meaning},
                          {"default", value_json(defaults, flag)}, {"value", value_json(*this, flag)}, {"origin", origin_of(flag.key).text}};
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace tenon::host
