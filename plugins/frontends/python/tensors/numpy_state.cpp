#include "python/tensors/numpy_state.h"

#include <cfenv>

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

/// np.geterr()
Ref error_modes() {
  Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
  Ref modes = numpy ? Ref::steal(PyObject_CallMethod(numpy.get(), "geterr", nullptr)) : Ref();
  if (!modes) PyErr_Clear();
  return modes;
}

bool quiet_by_name() {
  Ref modes = error_modes();
  PyObject *key = nullptr, *mode = nullptr;
  Py_ssize_t position = 0;
  while (modes && PyDict_Next(modes.get(), &position, &key, &mode)) {
    if (PyUnicode_CompareWithASCIIString(mode, "ignore") == 0) continue;
    // Compiled code leaves out what underflows to zero, as that takes many times as long: it sets no flag for it.
    const bool speaks_of_underflow = PyUnicode_CompareWithASCIIString(key, "under") == 0;
    if (speaks_of_underflow || PyUnicode_CompareWithASCIIString(mode, "warn") != 0) return false;
  }
  PyErr_Clear();
  return true;
}

}  // namespace

void clear_float_errors() noexcept { std::feclearexcept(FE_ALL_EXCEPT); }

FloatErrors float_errors() noexcept {
  const int flags = std::fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID);
  return {(flags & FE_DIVBYZERO) != 0, (flags & FE_OVERFLOW) != 0, (flags & FE_UNDERFLOW) != 0, (flags & FE_INVALID) != 0};
}

bool numpy_would_warn(const FloatErrors& errors) noexcept {
  if (!errors.divide && !errors.over && !errors.under && !errors.invalid) return false;
  Ref modes = error_modes();
  const auto speaks = [&](const char* kind) {
    PyObject* mode = modes ? PyDict_GetItemString(modes.get(), kind) : nullptr;
    return !mode || PyUnicode_CompareWithASCIIString(mode, "ignore") != 0;
  };
  return (errors.divide && speaks("divide")) || (errors.over && speaks("over")) || (errors.under && speaks("under")) ||
         (errors.invalid && speaks("invalid"));
}

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
