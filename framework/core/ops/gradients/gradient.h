// Gradients of nodes: written ones of the catalogue, and those derived from bodies and loop nests by reverse differentiation.
#pragma once

#include <optional>

#include "core/ops/build/node_builder.h"

namespace tenon::ops {

/// The gradient of each operand; nothing for integers, bools and literals, and where nothing depends on the operand.
using OperandGradients = std::vector<std::optional<ir::ValueId>>;

/// The program of the gradients of a straight-line program of parameters: parameters are those of `program` and then one adjoint a
/// result; results are, for each parameter of `inputs`, the sum of adjoint times partial derivative. A parameter that the results do
/// not depend on differentiably (an integer, a compared value) has the gradient 0. At a kink the value is that of torch's function of the
/// primitive's name: abs and sign give 0 at 0, minimum and maximum give each of two equals one half. Where a choice hands a branch nothing,
/// nothing comes out of it, even where its slope is infinite.
ScalarProgram gradient(const ScalarProgram& program, std::span<const std::size_t> inputs);

/// The gradients of the operands of a pointwise node, as nodes, given that of its result; nothing for operands that are integers,
/// bools or literals. Broadcast operands get the sum over what they were repeated for. Throws (internal) when the op has no body.
OperandGradients body_gradients(NodeBuilder& builder, ir::NodeId node, ir::ValueId result_gradient);

/// The same for an op that is a loop nest without a reduction or with a sum, or a scatter that overwrites or adds: what every load is
/// handed is added up where it was loaded. Throws (unsupported) for other reductions and scatters.
OperandGradients loop_gradients(NodeBuilder& builder, ir::NodeId node, ir::ValueId result_gradient);

/// Where the gradient of an op comes from: "written", "body", "loop nest", "decomposition", or why there is none.
std::string origin_of_gradient(const Op& op);

/// Whether the gradients of a composite node are those of its parts: it must be expanded before `node_gradients`. An op may have its own on devices alone.
bool is_differentiated_in_parts(const ir::Graph& graph, const ir::Node& node);

/// The gradients of a node's operands, given those of its results (none: nothing depends on that one). Written, or derived; a composite node
/// that is differentiated in parts must be expanded before. Throws (unsupported) with the reason where there is none.
OperandGradients node_gradients(NodeBuilder& builder, ir::NodeId node, std::span<const std::optional<ir::ValueId>> result_gradients);

/// Sums a gradient over the dimensions in which an operand of shape `to` was repeated.
ir::ValueId sum_to_shape(NodeBuilder& builder, ir::ValueId gradient, const ir::Shape& to);

}  // namespace tenon::ops
