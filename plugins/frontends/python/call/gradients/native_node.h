// Nodes of segments that torch runs without Python.
#pragma once

#include "python/call/gradients/segment_node.h"

namespace tenon::python {

/// As `add_nodes`, for a segment that is native.
void add_native_nodes(const std::shared_ptr<SegmentBackward>& backward, const NodesOfRun& run);

}  // namespace tenon::python
