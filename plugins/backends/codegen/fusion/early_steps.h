// Which steps run earlier than where the graph has their last nodes.
#pragma once

#include "core/ir/graph.h"
#include "fusion/plan.h"

namespace tenon::codegen {

/// Steps that may stop for a single number run first, with what gives them that: later ones may then write over inputs.
void stop_early(Plan& plan, const ir::Graph& graph);

/// Products whose results may be written over inputs (an optimizer's updates behind the gradient of a weight) run as soon as what they multiply is there
/// and nobody else is to read what they write over: until then all of that would stay alive.
void update_early(Plan& plan, const ir::Graph& graph);

}  // namespace tenon::codegen
