// From a graph to what runs: the way that all targets share.
#pragma once

#include "fusion/plan.h"

namespace tenon::codegen {

/// Takes composites apart, shares statistics, reads written parts where they were made, chooses layouts, joins concatenations, and plans what came
/// of it. `options.concatenations` are found here. Calls `options.pause` between the stages.
Plan plan_graph(ir::Graph& graph, const Machine& machine, PlanOptions options);

}  // namespace tenon::codegen
