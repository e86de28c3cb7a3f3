// What plain execution of a segment would take: whether it pays to go on compiled is judged by it.
#pragma once

#include <cstddef>

#include "python/tensors/captured_graph.h"

namespace tenon::python {

/// Nanoseconds that the library and the interpreter take for what a segment does, at a guess. Calls that a compiled graph leaves to the
/// library take as long compiled, and count nothing.
double plain_cost(const CapturedGraph& captured, std::size_t instructions);

/// Nanoseconds that a graph break and the segment after it take apart from its kernels, at a guess.
constexpr double kStepCost = 1700;

}  // namespace tenon::python
