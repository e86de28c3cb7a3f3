// A sample with some of its operands as constants of the graph.
#pragma once

#include <span>

#include "core/ops/reference/sample.h"

namespace tenon::conformance {

/// The graph of the sample with these of its tensor operands (by position among them, ascending) as constants, with the values that
/// `seed` gives. Node k of it reads the k-th of them; the others are its inputs, in order. Strided operands are row-major in it.
ir::Graph with_constants(const ops::Op& op, const ops::Sample& sample, std::span<const std::size_t> constants, std::uint64_t seed);

}  // namespace tenon::conformance
