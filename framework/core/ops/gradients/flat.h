// Ops whose gradient depends on the operand only by steps.
#pragma once

#include <string_view>

namespace tenon::ops {

/// Whether torch's gradient of the gradient of an op by its first operand is zeros, where what the gradient is computed by has none.
/// Source: tools/autograd/derivatives.yaml, the entries `*_backward` with `self: zeros_like(grad)`.
bool has_flat_gradient(std::string_view op);

}  // namespace tenon::ops
