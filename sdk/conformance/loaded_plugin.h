// A plugin that was opened through its exported entry.
#pragma once

#include <memory>
#include <string>

#include "core/abi/plugin.h"

namespace tenon::conformance {

/// Opens the library and negotiates, offering the versions that this build knows. Throws Exception with what is wrong with the
/// library. It stays open for the life of the process, as a host keeps it.
const TenonPlugin& load_plugin(const std::string& path, const TenonHost& host);

}  // namespace tenon::conformance
