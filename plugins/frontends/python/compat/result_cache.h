// The books of a functools.lru_cache, which C Python keeps in C.
#pragma once

#include "python/objects/ref.h"

namespace tenon::python::compat {

/// What a functools.lru_cache keeps results under: positional arguments, and those by name (a dict, or null).
Ref key_in_cache(PyObject* cache, PyObject* positional, PyObject* named);
/// The result that it holds under a key, borrowed; null (no exception) where it would call its function.
PyObject* result_in_cache(PyObject* cache, PyObject* key) noexcept;
/// The function that it calls, borrowed; null where this C Python keeps its books elsewhere.
PyObject* function_of_cache(PyObject* cache);
/// How many results it holds at most; -1 for any number.
Py_ssize_t size_limit_of_cache(PyObject* cache);

/// Calls it as the program does, with `given` as what its function gives, so that it counts and keeps what it always would. Throws PythonError.
void call_cache_giving(PyObject* cache, PyObject* positional, PyObject* named, PyObject* given);

}  // namespace tenon::python::compat
