// A graph of the host, moved to a device.
#pragma once

#include "core/ir/graph.h"

namespace tenon::conformance {

/// The graph with all its values and constants on the device: nodes that name a device name that one.
ir::Graph placed_on(ir::Graph graph, ir::Device device);

}  // namespace tenon::conformance
