// What the probe tries once the library is loaded: the plugin is made, and lives through all that it does on sample graphs.
#pragma once

#include <string>

#include "core/abi/plugin.h"

namespace tenon::probe {

/// Calls the plugin with those options (a JSON object) as a session would. It may fail with a reason: only what leaves the contract is
/// refused. Throws host::Refused: threw, call_failed.
void try_plugin(const TenonPlugin& plugin, const TenonHost* host, const std::string& options);

}  // namespace tenon::probe
