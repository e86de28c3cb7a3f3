// A sample with one of its operands as a constant of the graph.
#pragma once

#include <optional>

#include "core/ops/sample.h"

namespace tenon::conformance {

struct ConstantSample {
  ir::Graph graph;        // its constant owns its bytes
  std::size_t input = 0;  // which input of the sample's graph became the constant
};

/// The graph of the sample with its last tensor operand as a constant, with the values that `seed` gives. Strided operands are
/// row-major in it. Nothing for a sample without tensors.
std::optional<ConstantSample> with_constant_operand(const ops::Op& op, const ops::Sample& sample, std::uint64_t seed);

}  // namespace tenon::conformance
