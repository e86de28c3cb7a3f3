// A sample with a number in the place of a tensor.
#pragma once

#include <optional>

#include "core/ops/reference/sample.h"

namespace tenon::conformance {

/// The graph of the sample with its tensor operand `input` as a literal (1.5, 3 or true, by its dtype). Strided operands are row-major in it.
/// Nothing where the op takes no number there.
std::optional<ir::Graph> with_literal_operand(const ops::Op& op, const ops::Sample& sample, std::size_t input);

}  // namespace tenon::conformance
