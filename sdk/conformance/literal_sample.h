// A sample with a number in the place of a tensor.
#pragma once

#include <optional>

#include "core/ops/sample.h"

namespace tenon::conformance {

struct LiteralSample {
  ir::Graph graph;
  std::size_t input = 0;  // which input of the sample's graph became the literal
};

/// The graph of the sample with its last tensor operand as a literal (1.5, 3 or true, by its dtype). Strided operands are row-major in it.
/// Nothing for a sample of fewer than two tensors, or whose op takes no number there.
std::optional<LiteralSample> with_literal_operand(const ops::Op& op, const ops::Sample& sample);

}  // namespace tenon::conformance
