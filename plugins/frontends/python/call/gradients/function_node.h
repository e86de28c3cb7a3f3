// Nodes of segments as torch.autograd.Function makes them, for a torch whose own nodes are not known.
#pragma once

#include "python/call/gradients/segment_node.h"

namespace tenon::python {

/// As `add_nodes`. Inputs that require grad are held until the nodes end: torch has no other way to give their gradients a history.
void add_function_nodes(const std::shared_ptr<SegmentBackward>& backward, const NodesOfRun& run);

}  // namespace tenon::python
