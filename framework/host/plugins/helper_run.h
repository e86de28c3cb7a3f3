// One run of tenon-probe over a library, and what its end means.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "host/plugins/manifest.h"

namespace tenon::host {

/// Starts the program with a fresh token and the manifest's words, then `more` as its last arguments. `files` become its descriptors 3 (the
/// library), 5, 6, … Waits at most `seconds`; then the helper and all that it started is killed. Gives what it said as usable.
/// Throws Refused with its own reason, or: aborted, exited, segfault, crashed, timed_out, probe_failed.
nlohmann::json run_helper(const std::string& program, const Manifest& manifest, std::span<const std::string> more, std::span<const int> files, double seconds);

}  // namespace tenon::host
