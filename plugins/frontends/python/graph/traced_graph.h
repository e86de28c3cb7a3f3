// A captured graph as Python sees it: `tenon._traced.TracedGraph`, with `ValueRef` of there in the places of tensors.
#pragma once

#include "python/graph/captured_graph.h"

namespace tenon::python {

/// Makes the object. `name` is the captured function's. Throws PythonError.
Ref make_traced_graph(const CapturedGraph& captured, const std::string& name);

/// Makes a ValueRef.
Ref make_value_reference(const std::string& name);

}  // namespace tenon::python
