// By which arguments torch has no derivative of a function: it refuses the call, or the gradient.
#pragma once

#include <functional>

#include "python/foreign/foreign_names.h"

namespace tenon::python {

/// Calls `see` with each such argument of a call. `kwargs` may be null.
void for_arguments_without_derivative(const ForeignFunction& function, PyObject* args, PyObject* kwargs, const std::function<void(PyObject*)>& see);

}  // namespace tenon::python
