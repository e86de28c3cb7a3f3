// Nodes on devices that nobody takes there run in the host's memory: operands are copied to it, results back.
#pragma once

#include "core/ir/graph.h"

namespace tenon::host {

/// Whether the node may run in the host's memory instead: it gives the same there, and nothing that only its device has.
bool may_run_on_host(const ir::Graph& graph, const ir::Node& node);

/// Puts copies around the node, and it into the host's memory. The copies are new nodes: before it and behind it.
void bring_to_host(ir::Graph& graph, NodeId node);

}  // namespace tenon::host
