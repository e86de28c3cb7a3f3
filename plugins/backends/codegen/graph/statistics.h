// Reductions over concatenations that share parts: each part is reduced once.
#pragma once

#include "core/ir/graph.h"

namespace tenon::codegen {

/// A dense block in train mode takes the mean of [a], [a, b], [a, b, c] for each channel: what is reduced point by point from a
/// concatenation, along other dimensions than the joined one, is the concatenation of what is reduced from its parts. Where most of it is
/// reduced for other concatenations too, makes one reduction a part.
void share_statistics(ir::Graph& graph);

}  // namespace tenon::codegen
