// Which nodes a step of a plan computes, and what people read of them: in logs, profilers and traces.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "fusion/plan.h"

namespace tenon::codegen {

/// "kernel", "product" or "library".
const char* kind_of(const Step& step);

/// The nodes whose results a step writes, in their order: what is fused into them is not among them.
std::vector<NodeId> nodes_of(const Step& step);

/// The nodes that a step computes, each behind those that it reads: those whose results it writes, and what is fused into them.
std::vector<NodeId> computed_nodes(const ir::Graph& graph, const Plan& plan, const Step& step);
/// The same of a kernel, also of one within a step.
std::vector<NodeId> computed_nodes(const ir::Graph& graph, const Plan& plan, const KernelStep& kernel);

/// What reports, profilers and traces call that which computes these nodes: "add", "fused_sin_add_mean". Their ops in the order given, each once; of more
/// than some 60 characters the first ones, and how many more there are. Of letters, digits and underscores; "copy" where there are no nodes.
std::string name_of(const ir::Graph& graph, std::span<const NodeId> nodes);

/// The first of the nodes whose place in the user's program is known; null where none is.
const ir::Node* placed_node(const ir::Graph& graph, std::span<const NodeId> nodes);

}  // namespace tenon::codegen
