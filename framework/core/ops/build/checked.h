// Conditions on data under which a graph refuses to run.
#pragma once

#include "core/ops/build/node_builder.h"

namespace tenon::ops {

/// The number itself (0-d), of a graph that fails with an index out of range where `holds` (one bool) is false: the importer's program then
/// makes the call without the graph, which raises what is right.
ir::ValueId number_where(NodeBuilder& b, ir::ValueId number, ir::ValueId holds);

/// Makes the graph fail in that way unless all of `holds` are true.
void refuse_unless(NodeBuilder& b, ir::ValueId holds);

}  // namespace tenon::ops
