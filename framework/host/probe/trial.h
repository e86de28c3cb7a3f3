// Calls into a loaded plugin as the host will, on sample graphs.
#pragma once

#include <vector>

#include "core/abi/plugin.h"
#include "core/ir/graph.h"

namespace tenon::probe {

/// Creates the backend and lets it claim from each graph, or runs each pass on each graph; a frontend is left alone. A call that
/// answers with a failure is no reason to refuse the plugin (the host asks the next one then), except `create`.
/// Throws host::Refused (call_failed, threw).
void try_plugin(const TenonPlugin& plugin, const std::vector<ir::Graph>& graphs);

}  // namespace tenon::probe
