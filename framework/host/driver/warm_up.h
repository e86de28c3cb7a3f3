// Pays for what the first compile of a process costs once, before a program asks for it.
#pragma once

#include "core/abi/plugin.h"

namespace tenon::host {

/// Compiles the graph in a session of its own, as `tenon_warm_up` says. Throws what goes wrong.
void warm_up(const TenonGraph& graph);

}  // namespace tenon::host
