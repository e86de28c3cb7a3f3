// A graph of the host as the same graph of a device.
#pragma once

#include <optional>

#include "core/ir/graph.h"

namespace tenon::rewrite {

/// Puts every tensor of the graph and of its regions on the device, but for constants, which lie where their bytes do; nodes that make or copy tensors
/// say so. Who reads a constant of another device is the caller's to see to.
void place_on(ir::Graph& graph, ir::Device device);

/// The graph with every tensor on the device; constants stay in the host's memory, and are copied there by each run. Nothing for a graph with
/// devices of its own, or with regions that hold constants.
std::optional<ir::Graph> on_device(const ir::Graph& graph, ir::Device device);

}  // namespace tenon::rewrite
