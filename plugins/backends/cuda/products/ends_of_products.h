// What follows a convolution up to a reduction, such as a pooling: it is stored in the convolution's place, with channels last as that is.
#pragma once

#include "core/ir/graph.h"

namespace tenon::cuda {

/// Puts a move of the channels to the end, and back, between what follows a convolution point by point and what reduces it: `written_for_products` says
/// that it is stored there. In a graph without composites.
void move_ends_of_products(ir::Graph& graph);

}  // namespace tenon::cuda
