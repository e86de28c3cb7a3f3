// torch.compiler.substitute_in_graph: Python functions that the program wants captured in place of functions written in C.
#pragma once

#include "python/objects/ref.h"

namespace tenon::python {

/// The function that stands for a C function in captures; empty where the program has named none, or has not imported torch._dynamo. Throws nothing.
Ref substitute_for(PyObject* callable) noexcept;

}  // namespace tenon::python
