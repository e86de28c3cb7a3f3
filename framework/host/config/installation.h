// Where the parts of this installation are, found from where libtenon itself lies.
#pragma once

#include <string>

namespace tenon::host {

/// Paths are empty for what is not there.
struct Installation {
  std::string plugin_directory;  // lib/tenon/plugins
  std::string defaults_file;     // lib/tenon/defaults.toml: settings that name our own plugins
  std::string probe_program;     // tenon-probe
};

/// Found once, on first use.
const Installation& installation();

}  // namespace tenon::host
