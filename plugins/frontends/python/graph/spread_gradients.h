// Gradients of which one element is seen as many, as torch's engine hands on that of a sum.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/ir/graph.h"
#include "python/graph/captured_graph.h"
#include "python/graph/segment_gradients.h"

namespace tenon::python {

/// Whether nothing is computed of it but one sum, maybe of a view of it: the engine spreads the gradient of that.
bool is_only_summed(const ir::Graph& forward, ir::ValueId value);

/// The dimensions along which it does, of a gradient that a result is given (`given`, which lie as `tangents` say), or of one of what `is_summed`, seen
/// through views. What hooks find lies as they would find it without a compiler: they may not write it.
std::vector<std::size_t> spread_of(const ir::Graph& graph, ir::ValueId gradient, std::span<const ir::ValueId> given, std::span<const TangentLayout> tangents,
                                   const std::function<bool()>& is_summed);

/// Makes the tensor show one element along these dimensions.
void show_once(TensorOutput& tensor, std::span<const std::size_t> spread);

}  // namespace tenon::python
