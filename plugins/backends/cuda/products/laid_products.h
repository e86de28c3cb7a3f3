// Convolutions whose pictures have their channels last have weights and results that lie as tensor cores want them, too.
#pragma once

#include "core/ir/graph.h"

namespace tenon::cuda {

/// Moves the channels of weights and of results to the end and back where those of the picture were: what lies so is written once
/// (`written_for_products`), beside the product. Few channels are padded. So lies what
/// networks that are trained keep between.
void lay_products(ir::Graph& graph);

}  // namespace tenon::cuda
