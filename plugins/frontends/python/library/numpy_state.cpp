#include "python/library/numpy_state.h"

#include <cfenv>

#include "python/compat/waiting_signals.h"
#include "python/library/error_handling.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"
#include "python/objects/ref.h"

namespace tenon::python {
namespace {

/// The context variable in which NumPy 2 keeps its error handling; null where this NumPy has none of that name.
PyObject* error_variable() {
  static PyObject* const variable = [] {
    Ref umath = Ref::steal(imported("numpy._core.umath"));
    PyObject* found = umath ? PyObject_GetAttrString(umath.get(), "_extobj_contextvar") : nullptr;
    PyErr_Clear();
    return found;
  }();
  return variable;
}

/// np.geterr()
Ref error_modes() {
  const compat::SignalsWait waiting;  // an exception is dropped below
  Ref numpy = Ref::steal(imported("numpy"));
  Ref modes = numpy ? Ref::steal(PyObject_CallMethod(numpy.get(), "geterr", nullptr)) : Ref();
  if (!modes) PyErr_Clear();
  return modes;
}

thread_local FloatErrors noted;

/// Called by NumPy with the kind of an error and its number for it (UFUNC_FPE_*).
PyObject* note_error(PyObject*, PyObject* args) {
  const char* kind = nullptr;
  int number = 0;
  if (!PyArg_ParseTuple(args, "si", &kind, &number)) return nullptr;
  noted = noted | FloatErrors{(number & 1) != 0, (number & 2) != 0, (number & 4) != 0, (number & 8) != 0};
  Py_RETURN_NONE;
}

PyMethodDef note_error_method = {"note_error", note_error, METH_VARARGS, nullptr};

/// np.errstate under which what NumPy would warn of inside of a graph is noted.
Ref noting(const ErrorHandling& inside) {
  Ref numpy = checked(imported("numpy"));
  Ref modes = error_modes();
  Ref changed = checked(PyDict_New());
  Ref call = checked(PyUnicode_FromString("call")), handler = checked(PyCFunction_New(&note_error_method, nullptr));
  PyObject *kind = nullptr, *mode = nullptr;
  Py_ssize_t position = 0;
  while (modes && PyDict_Next(modes.get(), &position, &kind, &mode))
    if (PyUnicode_CompareWithASCIIString(mode, "warn") == 0) checked(PyDict_SetItem(changed.get(), kind, call.get()));
  Ref ignore = checked(PyUnicode_FromString("ignore"));
  const auto change = [&](const char* name, bool ignored, bool heard) {
    if (ignored || heard) checked(PyDict_SetItemString(changed.get(), name, ignored ? ignore.get() : call.get()));
  };
  change("divide", inside.ignored.divide, inside.heard.divide);
  change("over", inside.ignored.over, inside.heard.over);
  change("invalid", inside.ignored.invalid, inside.heard.invalid);
  checked(PyDict_SetItemString(changed.get(), "call", handler.get()));
  Ref make = checked(PyObject_GetAttrString(numpy.get(), "errstate")), nothing = checked(PyTuple_New(0));
  return checked(PyObject_Call(make.get(), nothing.get(), changed.get()));
}

/// What np.errstate keeps where it is `before`, with what it would warn of noted instead. The last answer is kept.
PyObject* noting_instead_of(PyObject* before, const ErrorHandling& handling) {
  static PyObject *known = nullptr, *answer = nullptr;  // guarded by the GIL
  static ErrorHandling known_handling;
  if (known == before && known_handling == handling) return answer;
  Ref scope = noting(handling);
  checked(PyObject_CallMethod(scope.get(), "__enter__", nullptr));
  PyObject* value = nullptr;
  const int found = PyContextVar_Get(error_variable(), nullptr, &value);
  Ref inside = Ref::steal(value);
  checked(PyObject_CallMethod(scope.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  if (found < 0 || !inside) throw_python_error();
  Py_XSETREF(known, Py_NewRef(before));
  Py_XSETREF(answer, inside.release());
  known_handling = handling;
  return answer;
}

thread_local int refusals = 0;  // objects of this thread that make exceptions of warnings

/// Asked by `warnings` whether a filter fits a message.
PyObject* is_refused(PyObject*, PyObject*) { return PyBool_FromLong(refusals > 0); }

PyMethodDef is_refused_method = {"match", is_refused, METH_O, nullptr};

/// A filter that makes exceptions of the warnings of such threads, and leaves other threads alone.
PyObject* refusing_filter() {
  static PyObject* const filter = [] {
    Ref match = checked(PyCFunction_New(&is_refused_method, nullptr)), members = checked(Py_BuildValue("{sO}", "match", match.get()));
    Ref make = checked(PyObject_GetAttrString(checked(imported("types")).get(), "SimpleNamespace"));
    Ref message = checked(PyObject_VectorcallDict(make.get(), nullptr, 0, members.get()));
    return checked(Py_BuildValue("(sOOOi)", "error", message.get(), PyExc_Warning, Py_None, 0)).release();
  }();
  return filter;
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

KeptErrorHandling::KeptErrorHandling() {
  PyObject* value = nullptr;
  if (error_variable() && PyContextVar_Get(error_variable(), nullptr, &value) < 0) PyErr_Clear();
  before_ = Ref::steal(value);
}

KeptErrorHandling::~KeptErrorHandling() {
  if (!before_) return;
  PendingException pending;
  PyObject* value = nullptr;
  const bool known = PyContextVar_Get(error_variable(), nullptr, &value) == 0;
  if (Ref now = Ref::steal(value); known && now.get() != before_.get()) Ref::steal(PyContextVar_Set(error_variable(), before_.get()));
}

void clear_float_errors() noexcept {
  std::feclearexcept(FE_ALL_EXCEPT);
  noted = {};
}

FloatErrors noted_errors() noexcept { return noted; }

FloatErrors float_errors() noexcept {
  const int flags = std::fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID);
  return {(flags & FE_DIVBYZERO) != 0, (flags & FE_OVERFLOW) != 0, (flags & FE_UNDERFLOW) != 0, (flags & FE_INVALID) != 0};
}

NotedErrors::NotedErrors(const ErrorHandling& inside) : before_(std::fetestexcept(FE_ALL_EXCEPT)) {
  // Not by warnings.catch_warnings, which makes Python forget what it has warned of once.
  PyObject* const filter = refusing_filter();
  filters_ = checked(PyObject_GetAttrString(checked(imported("warnings")).get(), "filters"));
  if (kept_.before()) {
    checked(PyContextVar_Set(error_variable(), noting_instead_of(kept_.before(), inside)));
  } else {
    handling_ = noting(inside);
    checked(PyObject_CallMethod(handling_.get(), "__enter__", nullptr));
  }
  ++refusals;
  if (PyList_Insert(filters_.get(), 0, filter) < 0) PyErr_Clear();
}

NotedErrors::~NotedErrors() {
  PendingException pending;
  --refusals;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(filters_.get()); ++i) {
    if (PyList_GET_ITEM(filters_.get(), i) != refusing_filter()) continue;
    if (PyList_SetSlice(filters_.get(), i, i + 1, nullptr) < 0) PyErr_Clear();
    break;
  }
  if (handling_ && !Ref::steal(PyObject_CallMethod(handling_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None))) PyErr_Clear();
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(before_);
}

bool numpy_would_warn(const FloatErrors& errors, const FloatErrors& heard) noexcept {
  if (!errors.any()) return false;
  Ref modes = error_modes();
  const auto speaks = [&](const char* kind, bool inside) {
    if (inside) return true;
    PyObject* mode = modes ? PyDict_GetItemString(modes.get(), kind) : nullptr;
    return !mode || PyUnicode_CompareWithASCIIString(mode, "ignore") != 0;
  };
  return (errors.divide && speaks("divide", heard.divide)) || (errors.over && speaks("over", heard.over)) ||
         (errors.under && speaks("under", heard.under)) || (errors.invalid && speaks("invalid", heard.invalid));
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
