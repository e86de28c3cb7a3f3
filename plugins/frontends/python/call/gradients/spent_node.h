// Results of a segment that computed their gradients itself, and let go of what that needed.
#pragma once

#include <Python.h>

#include <span>

#include "python/graph/captured_graph.h"

namespace tenon::python {

/// Whether a segment gives such results.
bool has_spent_results(const CapturedGraph& captured);

/// Makes them results of nodes of torch's autograd graph, as they are of torch's own after a walk: whoever walks again is refused. `inputs` by graph
/// input, `tensors` by CapturedGraph::tensors. Grad mode is on. Throws PythonError.
void add_spent_nodes(const CapturedGraph& captured, std::span<PyObject* const> inputs, PyObject* const* tensors);

}  // namespace tenon::python
