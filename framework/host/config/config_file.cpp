#include "host/config/config_file.h"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <toml++/toml.h>

#include "core/base/error.h"
#include "core/base/regular_file.h"
#include "host/config/setting_value.h"
#include "host/diagnostics/suggestion.h"

namespace tenon::host {
namespace {

constexpr std::uintmax_t kMaxFileBytes = 1 << 20;

std::string at(const std::string& path, const toml::node& node) { return fmt::format("{}:{}", path, node.source().begin.line); }

std::string shown(const toml::node& node) {
  std::ostringstream text;
  text << toml::json_formatter{node, toml::format_flags::none};
  return text.str();
}

GivenValue given(const toml::node& node) {
  using Kind = GivenValue::Kind;
  GivenValue value;
  value.shown = shown(node);
  if (const auto* boolean = node.as_boolean()) {
    value.kind = Kind::boolean;
    value.boolean = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = Kind::integer;
    value.integer = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    value.kind = Kind::number;
    value.number = number->get();
  } else if (const auto* text = node.as_string()) {
    value.kind = Kind::text;
    value.text = text->get();
  } else if (const auto* list = node.as_array()) {
    value.kind = Kind::list;
    for (const toml::node& item : *list) {
      if (!item.is_string()) value.kind = Kind::other;
      value.list.push_back(item.value_or<std::string>(""));
    }
  }
  return value;
}

/// Paths in a file are relative to the file.
void make_absolute(GivenValue& value, const std::filesystem::path& folder) {
  const auto resolve = [&](std::string& path) {
    if (!path.empty()) path = (folder / path).lexically_normal().string();
  };
  resolve(value.text);
  for (std::string& path : value.list) resolve(path);
}

void read_host_section(Config& config, const std::string& path, std::string_view section, const toml::table& table) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  for (const auto& [key, node] : table) {
    const Origin origin{at(path, node)};
    const Flag* flag = find_flag(fmt::format("{}.{}", section, key.str()));
    if (!flag) throw_unknown_key(section, key.str(), origin);
    GivenValue value = given(node);
    if (flag->path) make_absolute(value, folder);
    store(config, *flag, value, origin);
  }
}

void read_plugin_section(Config& config, const std::string& path, const std::string& name, const toml::table& table) {
  PluginSection& section = config.sections[name];
  section.origin.text = at(path, table);
  for (const auto& [key, node] : table) section.entries[std::string(key.str())] = {shown(node), {at(path, node)}};
}

[[noreturn]] void throw_top_level_key(const std::string& path, std::string_view key, const toml::node& node) {
  for (const Flag& flag : all_flags())
    if (!flag.section().empty() && flag.name() == key)
      throw Exception(Code::invalid_argument, fmt::format("{}: '{}' belongs into the section [{}]", at(path, node), key, flag.section()));
  throw Exception(Code::invalid_argument, fmt::format("{}: unknown key '{}': settings stand in sections such as [compile]", at(path, node), key));
}

/// Tables in tables are taken apart by calls in calls: a key of a hundred thousand parts would end the stack.
void require_short_keys(const std::string& path, std::string_view text) {
  constexpr std::ptrdiff_t kMostDots = 1000;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view here = text.substr(0, text.find('\n'));
    if (std::ranges::count(here, '.') > kMostDots) throw Exception(Code::invalid_argument, fmt::format("{}:{}: a line with more than {} dots", path, line, kMostDots));
    text.remove_prefix(std::min(text.size(), here.size() + 1));
  }
}

toml::table parse(const std::string& path) {
  if (const std::string why = why_not_readable(path); !why.empty())
    throw Exception(Code::not_found, fmt::format("cannot read the configuration file ({}): {}{}", why, path, nearest_path_text(path)));
  const std::uint64_t size = size_of_file(path);
  std::ifstream file(path, std::ios::binary);
  if (size > kMaxFileBytes)
    throw Exception(Code::invalid_argument, fmt::format("a configuration file may have {} bytes, this one has {}: {}", kMaxFileBytes, size, path));
  std::ostringstream text;
  text << file.rdbuf();
  require_short_keys(path, text.str());
  try {
    return toml::parse(text.str());
  } catch (const toml::parse_error& error) {
    throw Exception(Code::invalid_argument, fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
}

}  // namespace

std::vector<std::string> configuration_candidates() {
  if (getauxval(AT_SECURE)) return {};
  std::vector<std::string> result = {"tenon.toml"};
  if (const auto folder = environment("XDG_CONFIG_HOME"); folder && !folder->empty()) {
    result.push_back(*folder + "/tenon/tenon.toml");
  } else if (const auto home = environment("HOME"); home && !home->empty()) {
    result.push_back(*home + "/.config/tenon/tenon.toml");
  }
  return result;
}

bool file_exists(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

void read_config_file(Config& config, const std::string& path) {
  const toml::table document = parse(path);
  for (const auto& [key, node] : document) {
    const toml::table* table = node.as_table();
    if (!table) throw_top_level_key(path, key.str(), node);
    if (is_host_section(key.str())) {
      read_host_section(config, path, key.str(), *table);
    } else {
      read_plugin_section(config, path, std::string(key.str()), *table);
    }
  }
}

const Flag* find_flag(std::string_view key) {
  for (const Flag& flag : all_flags())
    if (key == flag.key && !flag.section().empty()) return &flag;
  return nullptr;
}

bool is_host_section(std::string_view section) {
  for (const Flag& flag : all_flags())
    if (!section.empty() && flag.section() == section) return true;
  return false;
}

void throw_unknown_key(std::string_view section, std::string_view key, const Origin& origin) {
  std::vector<std::string> known;
  for (const Flag& flag : all_flags())
    if (flag.section() == section) known.push_back(flag.name());
  throw Exception(Code::invalid_argument, fmt::format("{}: unknown key '{}' in [{}]{}", origin.text, key, section, suggestion_text(key, known)));
}

std::string json_from_text(std::string_view text) {
  try {
    const toml::table document = toml::parse(fmt::format("value = {}", text));
    if (document.size() == 1) return shown(*document.get("value"));
  } catch (const toml::parse_error&) {
    // A bare word is text.
  }
  std::ostringstream quoted;
  quoted << toml::json_formatter{toml::value<std::string>(std::string(text)), toml::format_flags::none};
  return quoted.str();
}

}  // namespace tenon::host
