// Methods of built-in containers that change one that is older than the call.
#pragma once

#include "python/evaluator/evaluator.h"

namespace tenon::python {

/// Calls the method of the built-in base class (`append`, `__setitem__`, `__ior__`, …) for real and in the journal. Guards what the method
/// depends on, as little as that is: an append needs no guard.
Ref change_older(Evaluator& evaluator, PyObject* container, const char* method, Arguments arguments);

}  // namespace tenon::python
