// A graph that computes gradients, for a backend written in Python: no calls of the program's say what it does, so each node is a call of torch's
// function that does just that.
#pragma once

#include <string>
#include <vector>

#include "python/graph/captured_graph.h"

namespace tenon::python {

/// Whether the program's own calls do not say what a captured graph computes: it keeps something for gradients, or computes them.
bool is_of_ops(const CapturedGraph& captured);

/// Makes a `tenon._traced.TracedGraph` of what is run. `given`: by graph input, whether there is one; nothing reads the others. Throws PythonError, and
/// GraphBreak where a node has no such call.
Ref graph_of_ops(const CapturedGraph& captured, const std::string& name, const std::vector<bool>& given);

/// Throws GraphBreak where `graph_of_ops` would.
void require_calls_of_ops(const CapturedGraph& captured);

}  // namespace tenon::python
