// The helper's side of plugins.isolate: one call of a backend for the host.
#pragma once

#include "core/abi/plugin.h"
#include "host/plugins/isolation/message_file.h"

namespace tenon::probe {

/// Makes the backend that the request describes, and lets it claim, or compile and store what it compiled, or load; gives the head of the
/// reply, and what was stored. A failure that the backend reports is part of the reply; see host/plugins/isolation/probe_protocol.h.
/// Throws host::Refused (threw), tenon::Exception (malformed).
nlohmann::json answer_call(const TenonBackend& table, const TenonHost* host, const host::Message& request, std::string& stored);

}  // namespace tenon::probe
