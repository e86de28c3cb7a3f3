// Reads tenon.toml.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/config/config.h"
#include "host/config/flags.h"

namespace tenon::host {

/// Where a configuration file is looked for when none is named: the working directory, then the user's configuration directory.
/// Empty when the process is privileged.
std::vector<std::string> configuration_candidates();
bool file_exists(const std::string& path);

/// Puts the file's settings into `config`. Throws as Config::load does.
void read_config_file(Config& config, const std::string& path);

const Flag* find_flag(std::string_view key);
bool is_host_section(std::string_view section);
/// Throws the error about a key that a section of the host does not have.
[[noreturn]] void throw_unknown_key(std::string_view section, std::string_view key, const Origin& origin);
/// A TOML value as JSON; text that is no TOML value as a JSON string.
std::string json_from_text(std::string_view text);

}  // namespace tenon::host
