// What a bug report should say of a session.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tenon::host {

class Session;

/// Sections of names and texts: versions, machine, plugins and why one is not used, cache, settings that are not the defaults. Loads the backends.
nlohmann::json diagnosis(Session& session);

}  // namespace tenon::host
