// Calls of library functions while a program is captured: their warnings are not heard, or end the capture.
#pragma once

#include <functional>

#include "core/ops/foreign/foreign_call.h"
#include "python/library/error_handling.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Calls under a filter of all warnings: "ignore", or "error".
Ref call_filtered(const char* action, PyObject* callable, PyObject* args, PyObject* kwargs);

/// Calls a library function on twins, without warnings about the zeros in them. What NumPy warns of besides, by the sizes and dtypes, is
/// thrown as an error: the call itself has to warn.
Ref call_quietly(PyObject* callable, PyObject* args, PyObject* kwargs, ops::Flavour flavour);

/// Calls a library function whose result stands for all later calls. Throws GraphBreak when NumPy would warn: it must do so every time.
Ref call_for_good(PyObject* callable, PyObject* args, PyObject* kwargs, ops::Flavour flavour, const ErrorHandling& handling = {});

Ref call_for_good(const std::function<Ref()>& call, const ErrorHandling& handling = {});

}  // namespace tenon::python
