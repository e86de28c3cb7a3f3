// Captures a call whole, for `tenon.export`.
#pragma once

#include <Python.h>

namespace tenon::python {

/// export_capture(fn, args, kwargs, tensors, names, varying): the graph of the call `fn(*args, **kwargs)`, apart from the program. `tensors`: those
/// among the arguments, each once; they become the graph's inputs, called `names`. `varying`: numbers that are symbols, in the words of their
/// sources ("x.shape[0]"). All else that was read is frozen. Gives a dict:
/// `graph` (ExportedGraph), `result` (with a ValueRef called by its position for each output), `kinds` (of the outputs: "torch",
/// "array", "scalar"), `updates` (inputs that a call writes), `guards` (what was assumed, in words).
/// Raises GraphBreakError where the call cannot be captured whole.
PyObject* export_capture(PyObject* module, PyObject* args);

}  // namespace tenon::python
