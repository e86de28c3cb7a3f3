// Gradients of pointwise ops, derived from their bodies by reverse differentiation.
#pragma once

#include <optional>

#include "core/ops/node_builder.h"

namespace tenon::ops {

/// The program of the gradients of a straight-line program of parameters: parameters are those of `program` and then one adjoint a
/// result; results are, for each parameter of `inputs`, the sum of adjoint times partial derivative. A parameter that the results do
/// not depend on differentiably (an integer, a compared value) has the gradient 0. At a kink the value is torch's where torch's
/// definition is a subgradient of the primitive: abs and sign give 0 at 0, minimum and maximum give each of two equals one half.
/// Throws (unsupported) for a primitive whose derivative is no primitive (lgamma), naming it.
ScalarProgram gradient(const ScalarProgram& program, std::span<const std::size_t> inputs);

/// The gradients of the operands of a pointwise node, as nodes, given that of its result; nothing for operands that are integers,
/// bools or literals. Broadcast operands get the sum over what they were repeated for. Throws (internal) when the op has no body.
std::vector<std::optional<ir::ValueId>> body_gradients(NodeBuilder& builder, ir::NodeId node, ir::ValueId result_gradient);

}  // namespace tenon::ops
