// The graph of an export: what a capture read of Python becomes constants, what was an argument stays an input.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "python/graph/captured_graph.h"

namespace tenon::python {

/// One tensor among the arguments of an exported call.
struct ArgumentTensor {
  PyObject* object;  // borrowed
  std::string name;
};

/// Makes the graph whose inputs are the arguments, in order, used or not, and whose outputs are all tensors of the result, in the order
/// of `captured.outputs`. `objects`: by input of the captured graph. The values of all others are copied into constants.
/// Throws GraphBreak for what cannot be an input; Exception for a graph that cannot be made.
ir::Graph lifted_graph(const CapturedGraph& captured, std::span<PyObject* const> objects, std::span<const ArgumentTensor> arguments);

}  // namespace tenon::python
