// Puts the value of a setting, given as TOML or as text, into the configuration.
#pragma once

#include <string>
#include <string_view>

#include "host/config/flags.h"

namespace tenon::host {

/// A value as a file, a variable or an argument gives it.
struct GivenValue {
  enum class Kind { boolean, integer, number, text, list, other };
  Kind kind = Kind::other;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<std::string> list;
  std::string shown;  // as in messages
};

/// Reads a text by the type that the flag wants: lists are separated by commas (paths of a variable by colons), booleans are
/// true, false, 1, 0, on, off. What does not fit comes back as text.
GivenValue value_from_text(const Flag& flag, std::string_view text, char separator = ',');

/// Stores the value. Throws (invalid_argument) when it has another type or is out of range; the message begins with the origin.
void store(Config& config, const Flag& flag, const GivenValue& value, const Origin& origin);

}  // namespace tenon::host
