// The helper's side of plugins.isolate: one claim or compile for the host.
#pragma once

#include "core/abi/plugin.h"

namespace tenon::probe {

/// Reads the request, makes the backend, lets it claim, or compile and store what it compiled, and writes the reply; see
/// host/plugins/probe_protocol.h for both. A failure that the backend reports is part of the reply.
/// Throws host::Refused (threw), tenon::Exception (malformed).
void answer_call(const TenonPlugin& plugin, int request, int reply);

}  // namespace tenon::probe
