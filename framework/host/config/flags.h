// The one table of flags: name, environment variable, meaning, and which member of Config holds the value.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "host/config/config.h"

namespace tenon::host {

struct Flag {
  using Member = std::variant<bool Config::*, int Config::*, std::size_t Config::*, double Config::*, std::string Config::*,
                              std::vector<std::string> Config::*>;

  const char* key;          // in tenon.toml and in overrides: "section.name"; without a section: an argument only
  const char* environment;  // "" for none
  Member member;
  const char* meaning;
  bool path = false;  // one written in a file is relative to that file

  std::string section() const;
  std::string name() const;
  /// "boolean", "integer", "number", "text" or "list".
  const char* type() const;
};

/// Every flag that the host has.
std::span<const Flag> all_flags();

/// A variable of the environment; nothing when it is unset, or when the process is privileged (AT_SECURE).
std::optional<std::string> environment(const char* name);

/// The names of the variables of the environment that begin so, sorted; none when the process is privileged.
std::vector<std::string> variables(std::string_view prefix);

}  // namespace tenon::host
