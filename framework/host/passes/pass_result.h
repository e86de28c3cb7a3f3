// One crossing into a plugin of passes: a buffer goes in, a buffer and constants come back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ir/graph.h"
#include "host/plugins/registry/registry.h"

namespace tenon::host {

struct PassOutcome {
  std::optional<ir::Graph> graph;                      // nothing when the passes changed nothing
  std::vector<std::shared_ptr<const void>> constants;  // owners of the bytes of new constants
};

/// Calls the plugin. An error is the plugin's failure, or what is wrong with the buffer that it gave.
Result<PassOutcome> call_passes(const Plugin& plugin, const std::vector<std::string>& passes, const ir::Graph& graph, const std::string& options);

}  // namespace tenon::host
