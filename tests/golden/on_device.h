// A graph of the host as the same graph of a device.
#pragma once

#include <optional>

#include "core/ir/graph.h"

namespace tenon::golden {

/// The graph with every tensor on the device; nothing for one with constants, whose bytes would have to be there, or with devices of its own.
std::optional<ir::Graph> on_device(const ir::Graph& graph, ir::Device device);

}  // namespace tenon::golden
