// Modules that this frontend needs, past what the program has made of importing.
#pragma once

#include "python/objects/graph_break.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// A new reference to a module; null with an exception set. One that has been imported is taken as it is: neither the program's own `__import__` nor
/// globals with other `__builtins__` have a say.
inline PyObject* imported(const char* name) {
  Ref text = Ref::steal(PyUnicode_FromString(name));
  PyObject* module = text ? PyImport_GetModule(text.get()) : nullptr;
  return module != nullptr || PyErr_Occurred() ? module : PyImport_ImportModule(name);
}

/// Whether the program has imported a module.
inline bool is_imported(const char* name) { return PyDict_GetItemString(PyImport_GetModuleDict(), name) != nullptr; }

/// getattr for captures, which ask over and over: a fresh string each time would push others out of CPython's cache of what types find. A new
/// reference; null with an exception set.
inline PyObject* interned_attribute(PyObject* object, const char* name) {
  const Ref text = Ref::steal(PyUnicode_InternFromString(name));
  return text ? PyObject_GetAttr(object, text.get()) : nullptr;
}

/// What the text of a program of ours defines: a dict. Throws PythonError.
inline Ref defined_by(const char* program) {
  Ref scope = checked(PyDict_New());
  checked(PyDict_SetItemString(scope.get(), "__builtins__", PyEval_GetBuiltins()));
  checked(PyRun_String(program, Py_file_input, scope.get(), scope.get()));
  return scope;
}

}  // namespace tenon::python
