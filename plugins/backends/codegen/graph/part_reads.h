// Reads of parts that were written: of a value that a part was written to, a program mostly reads that part again.
#pragma once

#include "core/ir/graph.h"
#include "machine/machine.h"

namespace tenon::codegen {

/// A view of what was written to a small part is what was written there, and one that lies apart from it is a view of the value before. Then nobody
/// reads the whole between writes that follow each other, and each may go over the one before.
void forward_written_parts(ir::Graph& graph, const Machine& machine);

}  // namespace tenon::codegen
