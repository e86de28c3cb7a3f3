// A sample whose op is applied to its own result.
#pragma once

#include <optional>

#include "core/ops/reference/sample.h"

namespace tenon::conformance {

/// A graph of two nodes: the op on the sample's operands, and the op again with the first result in the place of the first operand.
/// Strided operands are row-major in it. Nothing where the result is of another type than that operand.
std::optional<ir::Graph> chained(const ops::Op& op, const ops::Sample& sample);

}  // namespace tenon::conformance
