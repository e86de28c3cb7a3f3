// Whether nodes of a graph do nothing but move elements.
#pragma once

#include <cstddef>

#include "core/ir/graph.h"

namespace tenon::python {

/// Whether every node from `first` on does nothing but give elements of one operand in another order: its result may be a view.
bool only_moves(const ir::Graph& graph, ir::NodeId node);
bool only_moves_elements(const ir::Graph& graph, std::size_t first);
/// Whether the library gives a view for what the node does to a strided tensor, wherever that has gaps.
bool is_always_view(const ir::Graph& graph, ir::NodeId node);
/// Whether the node moves so many complex numbers that the library is faster: code is generated for the host alone, and for loop nests and scatters alone.
bool moves_many_complex(const ir::Graph& graph, ir::NodeId node);

}  // namespace tenon::python
