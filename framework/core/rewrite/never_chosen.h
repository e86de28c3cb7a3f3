// Values that depend on others by a gradient of zeros alone: torch's history goes on through what a value is not computed with.
#pragma once

#include "core/ops/build/node_builder.h"

namespace tenon::rewrite {

/// The value, with a history that goes on through another one of a shape that broadcasts to its own: a choice between both that never falls on that one.
ir::ValueId never_chosen(ops::NodeBuilder& builder, ir::ValueId other, ir::ValueId value);

/// Has what reads such values read what they are: nothing is to be computed for a history that nobody asks for any more.
void read_past_never_chosen(ir::Graph& graph);

}  // namespace tenon::rewrite
