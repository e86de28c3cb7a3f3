// A captured graph as Python sees it: `_tenon.TracedGraph`, with `_tenon.ValueRef` in the places of tensors.
#pragma once

#include "python/graph/captured_graph.h"

namespace tenon::python {

/// Makes the object. `name` is the captured function's. Throws PythonError.
Ref make_traced_graph(const CapturedGraph& captured, const std::string& name);

/// Makes a ValueRef.
Ref make_value_reference(const std::string& name);

/// Adds the two types to the module. False with an exception set when that fails.
bool add_traced_graph_types(PyObject* module);

}  // namespace tenon::python
