// Composite ops as nodes of simpler ones: what the host does for a node that a backend refuses.
#pragma once

#include "core/ops/node_builder.h"

namespace tenon::ops {

/// The decomposition of a node as a graph: its inputs are the node's operands that are no literals, its outputs the node's
/// results, its symbols those of `graph`. Throws (internal) when the op has no decomposition.
ir::Graph decomposition(const ir::Graph& graph, ir::NodeId node);

/// Replaces a node by nodes of simpler ops: by its decomposition, else by its body as nodes of the primitive ops.
/// False when the op has neither, or is itself primitive. The node is erased; its users read the new values.
bool expand_node(ir::Graph& graph, ir::NodeId node);

/// The body of a pointwise node as nodes of the primitives' ops, made with `builder`. Throws (internal) when the op has no body.
ir::ValueId expand_body(NodeBuilder& builder, ir::NodeId node);

/// The op of the catalogue whose body is that primitive alone; empty for leaves and loads.
std::string_view op_of(Primitive primitive);

}  // namespace tenon::ops
