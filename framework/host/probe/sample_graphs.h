// The graphs on which a plugin is tried before it is trusted.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace tenon::probe {

/// A few small graphs: one without nodes, one of an op that no plugin knows, one with symbolic dimensions, and one for some ops of
/// the catalogue, spread over all of it.
std::vector<ir::Graph> sample_graphs();

}  // namespace tenon::probe
