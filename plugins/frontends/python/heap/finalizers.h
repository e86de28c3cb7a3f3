// Objects at whose end code of the program runs: it must run in its turn among the other effects of the program.
#pragma once

#include <Python.h>

namespace tenon::python {

/// Whether code may run when the last reference to the object goes: it has a finalizer, or what it holds has one, as far as a short look
/// shows. Generators have one while they are suspended.
bool may_end_in_code(PyObject* object);

/// The same of an object that goes now, with what nothing else holds; weak references may have a callback, or are asked.
bool end_runs_code(PyObject* object);

/// Breaks the graph where `object`, which is older than the call, may lose its last reference and then runs code. `object` may be null.
void require_quiet_end(PyObject* object);

}  // namespace tenon::python
