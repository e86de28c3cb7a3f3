// `_tenon.CompiledFunction`: the callable that users get.
#pragma once

#include <Python.h>

namespace tenon::python {

/// Adds the type to the module. False with an exception set when that fails.
bool add_compiled_function_type(PyObject* module);

/// Empties the caches of all compiled functions.
void clear_all_caches();

}  // namespace tenon::python
