// A graph of the host as the same graph of a device.
#pragma once

#include <optional>

#include "core/ir/graph.h"

namespace tenon::rewrite {

/// The graph with every tensor on the device; constants stay in the host's memory, and are copied there by each run. Nothing for a graph with
/// devices of its own, or with regions that hold constants.
std::optional<ir::Graph> on_device(const ir::Graph& graph, ir::Device device);

}  // namespace tenon::rewrite
