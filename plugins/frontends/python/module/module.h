// What each part of the frontend adds to the extension module.
#pragma once

#include <Python.h>

namespace tenon::python {

/// Each adds its types and functions to the module. False with an exception set when that fails.
bool add_tensor_types(PyObject* module);
bool add_call_types(PyObject* module);

}  // namespace tenon::python
