// Passes in C++: functions on graphs. A plugin is a list of them and one line: TENON_PASSES("my_passes", "1.0", {"name", "doc", run}).
// Needs core: tenon_add_plugin(... CORE).
#pragma once

#ifndef TENON_PLUGIN_CORE
#error "tenon/pass.h needs Tenon's core: add CORE to tenon_add_plugin"
#endif

#include <string>

#include "core/ir/graph.h"
#include "tenon/host_services.h"

namespace tenon {

/// What a pass knows besides its graph.
struct PassContext {
  HostServices host;
  std::string options;  // a JSON object
};

/// Rewrites a graph in place. Keeps the order of inputs and outputs, names and locations of what survives, and every node with a
/// random or opaque trait. Throw to fail: the host then goes on with the graph as it was.
using PassFunction = void (*)(ir::Graph& graph, const PassContext& context);

struct Pass {
  const char* name;  // what a pipeline calls it
  const char* doc;   // one line
  PassFunction run;
};

}  // namespace tenon

#include "tenon/pass_entry.h"
