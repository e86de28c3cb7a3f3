#include "host/config/setting_value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace tenon::host {
namespace {

using Kind = GivenValue::Kind;

template <class T>
bool parse_all(std::string_view text, T& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (const std::string_view part = trimmed(text.substr(0, end)); !part.empty()) parts.emplace_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

/// "[a, b]" and ["a", "b"] mean the same as "a, b".
std::vector<std::string> list_of(std::string_view text, char separator) {
  text = trimmed(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
    separator = ',';
  }
  std::vector<std::string> parts = split(text, separator);
  for (std::string& part : parts)
    if (part.size() >= 2 && (part.front() == '"' || part.front() == '\'') && part.back() == part.front()) part = part.substr(1, part.size() - 2);
  return parts;
}

[[noreturn]] void wrong_type(const Flag& flag, const GivenValue& value, const Origin& origin) {
  static constexpr const char* given[] = {"a boolean", "an integer", "a number", "text", "a list", "neither"};
  const std::string wanted = std::string(flag.type()) == "list" ? "a list of text" : std::string(flag.type()) == "integer" ? "an integer"
                             : std::string(flag.type()) == "text" ? "text" : fmt::format("a {}", flag.type());
  throw Exception(Code::invalid_argument, fmt::format("{}: {} must be {}, not {}: {}", origin.text, flag.key, wanted,
                                                      given[static_cast<std::size_t>(value.kind)], value.shown));
}

/// Stores into a member of each type; false when the value is of another type.
struct Store {
  Config& config;
  const GivenValue& value;

  bool operator()(bool Config::*member) const {
    config.*member = value.boolean;
    return value.kind == Kind::boolean;
  }
  bool operator()(int Config::*member) const {
    config.*member = static_cast<int>(value.integer);
    return value.kind == Kind::integer && value.integer >= 0 && value.integer <= std::numeric_limits<int>::max();
  }
  bool operator()(std::size_t Config::*member) const {
    config.*member = static_cast<std::size_t>(value.integer);
    return value.kind == Kind::integer && value.integer >= 0;
  }
  bool operator()(double Config::*member) const {
    config.*member = value.kind == Kind::integer ? static_cast<double>(value.integer) : value.number;
    return (value.kind == Kind::integer || value.kind == Kind::number) && config.*member >= 0;
  }
  bool operator()(std::string Config::*member) const {
    config.*member = value.text;
    return value.kind == Kind::text;
  }
  bool operator()(std::vector<std::string> Config::*member) const {
    config.*member = value.list;
    return value.kind == Kind::list;
  }
};

}  // namespace

GivenValue value_from_text(const Flag& flag, std::string_view text, char separator) {
  GivenValue value;
  value.shown = fmt::format("\"{}\"", text);
  value.kind = Kind::text;
  value.text = text;
  const std::string_view type = flag.type();
  if (type == "list") {
    value.kind = Kind::list;
    value.list = list_of(text, separator);
  } else if (type == "boolean") {
    const std::string_view word = trimmed(text);
    value.boolean = word == "true" || word == "1" || word == "on";
    if (value.boolean || word == "false" || word == "0" || word == "off") value.kind = Kind::boolean;
  } else if (type != "text") {
    if (parse_all(trimmed(text), value.integer)) {
      value.kind = Kind::integer;
    } else if (parse_all(trimmed(text), value.number)) {
      value.kind = Kind::number;
    }
  }
  return value;
}

void store(Config& config, const Flag& flag, const GivenValue& value, const Origin& origin) {
  if (value.kind == Kind::integer && value.integer < 0)
    throw Exception(Code::invalid_argument, fmt::format("{}: {} must not be negative: {}", origin.text, flag.key, value.shown));
  if (value.kind == Kind::number && std::string_view(flag.type()) == "number" && !(std::isfinite(value.number) && value.number >= 0))
    throw Exception(Code::invalid_argument, fmt::format("{}: {} must be finite and not negative: {}", origin.text, flag.key, value.shown));
  constexpr int kMost = std::numeric_limits<int>::max();
  if (value.kind == Kind::integer && std::holds_alternative<int Config::*>(flag.member) && value.integer > kMost)
    throw Exception(Code::invalid_argument, fmt::format("{}: {} must be at most {}: {}", origin.text, flag.key, kMost, value.shown));
  if (!std::visit(Store{config, value}, flag.member)) wrong_type(flag, value, origin);
  config.origins[flag.key] = origin;
}

}  // namespace tenon::host
