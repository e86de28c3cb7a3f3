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

/// The ops of nodes: "matmul add relu". Of many the first ones, and how many more there are.
std::string words_of(const ir::Graph& graph, std::span<const NodeId> nodes);

/// The first of the nodes whose place in the user's program is known; null where none is.
const ir::Node* placed_node(const ir::Graph& graph, std::span<const NodeId> nodes);

}  // namespace tenon::codegen
