// A captured graph as Python sees it: `tenon._traced.TracedGraph`, with `ValueRef` of there in the places of tensors.
#pragma once

#include "python/graph/captured_graph.h"

namespace tenon::python {

/// Makes the object. `name` is the captured function's. Throws PythonError.
Ref make_traced_graph(const CapturedGraph& captured, const std::string& name);

/// The parts of a TracedGraph: lists, as the class has them.
struct TracedParts {
  std::string name, text;
  Ref inputs, copies, numbers, calls, outputs, updates, op_names;
  bool is_backward = false;
};
/// Makes the object. Throws PythonError.
Ref make_traced_graph(const TracedParts& parts);

/// Makes a string.
Ref make_text(const std::string& value);

/// Makes a ValueRef.
Ref make_value_reference(const std::string& name);

}  // namespace tenon::python
