// Composite ops as nodes of simpler ones: what the host does for a node that a backend refuses.
#pragma once

#include <functional>
#include <span>

#include "core/ops/build/node_builder.h"

namespace tenon::ops {

/// Is told that one value took the place of another.
using Moved = std::function<void(ir::ValueId from, ir::ValueId to)>;

/// The decomposition of a node as a graph: its inputs are the node's operands that are no literals, its outputs the node's
/// results, its symbols those of `graph`. Throws (internal) when the op has no decomposition.
ir::Graph decomposition(const ir::Graph& graph, ir::NodeId node);

/// Replaces a node by nodes of simpler ops: by its decomposition, else by its body as nodes of the primitive ops.
/// False when the op has neither, or is itself primitive. The node is erased; its users read the new values, of which `moved` is told.
bool expand_node(ir::Graph& graph, ir::NodeId node, const Moved& moved = {});

/// The body of a pointwise node as nodes of the primitives' ops, made with `builder`. Throws (internal) when the op has no body.
ir::ValueId expand_body(NodeBuilder& builder, ir::NodeId node);

/// The body of a pointwise node as a program of parameters, one an operand. Throws (internal) when the op has no body.
ScalarProgram body_program(const ir::Graph& graph, ir::NodeId node);

/// The dtype in which a pointwise node computes with its literals: that of its tensors, of which a condition does not count beside others;
/// that of the result, a choice between literals, where there is only a condition; that of the first literal where there is no tensor.
DType literal_dtype(const OpQuery& query, DType result);

/// The literal as a number of that dtype.
Scalar literal_scalar(Scalars& s, const ir::Literal& literal, DType dtype);

/// A straight-line program of parameters as nodes. Parameters are values whose dtype may be a storage type of the parameter's;
/// results are tensors, of at least the shape that the parameters broadcast to; a result that is a constant has `shape`.
std::vector<ir::ValueId> expand_program(NodeBuilder& builder, const ScalarProgram& program, std::span<const ir::ValueId> parameters,
                                        const ir::Shape& shape);

/// What a loop index or a load is as a value, given the registers before it.
using LeafExpansion = std::function<ir::ValueId(const Instruction&, std::span<const ir::ValueId> registers)>;

/// Every register of a program of loop indices and loads as a value: a tensor, of `shape` where it is made of numbers alone, or a literal where
/// the program says a number.
std::vector<ir::ValueId> expand_registers(NodeBuilder& builder, const ScalarProgram& program, const ir::Shape& shape, const LeafExpansion& leaf);

/// The op of the catalogue whose body is that primitive alone; empty for leaves and loads.
std::string_view op_of(Primitive primitive);

}  // namespace tenon::ops
