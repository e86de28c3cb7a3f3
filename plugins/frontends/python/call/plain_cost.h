// What plain execution of a segment would take: whether it pays to go on compiled is judged by it.
#pragma once

#include <cstddef>

#include "python/graph/captured_graph.h"

namespace tenon::python {

/// What a segment does, as plain execution would do it.
struct PlainWork {
  /// What the library and the interpreter take, at a guess. Calls that a compiled graph leaves to the library take as long compiled, and count nothing.
  double nanoseconds = 0;
  bool on_arrays = false;    // some node computes on more than single numbers
  bool takes_apart = false;  // an array is taken apart into many elements or rows
  bool takes_element = false;  // a single element is taken out of one, at an index
};
PlainWork plain_work(const CapturedGraph& captured, std::size_t instructions);

/// Nanoseconds that a graph break and the segment after it take apart from its kernels, at a guess.
constexpr double kStepCost = 1700;

}  // namespace tenon::python
