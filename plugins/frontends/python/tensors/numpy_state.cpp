#include "python/tensors/numpy_state.h"

#include <cstring>

#include "python/heap/ref.h"

namespace tenon::python {
namespace {

/// The context variable in which NumPy 2 keeps its error handling; null where this NumPy has none of that name.
PyObject* error_variable() {
  static PyObject* const variable = [] {
    Ref umath = Ref::steal(PyImport_ImportModule("numpy._core.umath"));
    PyObject* found = umath ? PyObject_GetAttrString(umath.get(), "_extobj_contextvar") : nullptr;
    PyErr_Clear();
    return found;
  }();
  return variable;
}

bool quiet_by_name() {
  Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
  Ref modes = numpy ? Ref::steal(PyObject_CallMethod(numpy.get(), "geterr", nullptr)) : Ref();
  PyObject *key = nullptr, *mode = nullptr;
  Py_ssize_t position = 0;
  while (modes && PyDict_Next(modes.get(), &position, &key, &mode))
    if (PyUnicode_CompareWithASCIIString(mode, "ignore") != 0 && PyUnicode_CompareWithASCIIString(mode, "warn") != 0) return false;
  PyErr_Clear();
  return true;
}

}  // namespace

bool numpy_errors_are_quiet() noexcept {
  PyObject* variable = error_variable();
  if (!variable) return quiet_by_name();
  static PyObject* default_handling = nullptr;
  static bool default_is_quiet = false;
  PyObject* value = nullptr;
  if (PyContextVar_Get(variable, nullptr, &value) < 0) {
    PyErr_Clear();
    return quiet_by_name();
  }
  Ref handling = Ref::steal(value);
  if (handling && handling.get() == default_handling) return default_is_quiet;
  const bool quiet = quiet_by_name();
  if (!default_handling && handling) {  // kept alive, so that its address stays its own
    default_handling = Py_NewRef(handling.get());
    default_is_quiet = quiet;
  }
  return quiet;
}

}  // namespace tenon::python
