// Convolutions on devices read and give pictures whose channels lie last.
#pragma once

#include "tenon/pass.h"

namespace tenon::cleanup {

/// Replaces the convolutions of graphs that keep no picture of theirs for later, and their gradients where both are in one: a library is faster at
/// pictures that lie so, and needs less memory beside them, and so are our own kernels. What is computed between convolutions reads and writes that order.
void channels_last(ir::Graph& graph, const PassContext& context);

}  // namespace tenon::cleanup
