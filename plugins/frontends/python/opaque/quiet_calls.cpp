#include "python/opaque/quiet_calls.h"

#include "python/compat/object_layout.h"
#include "python/library/numpy_state.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"
#include "python/segments/warning_state.h"

namespace tenon::python {
namespace {

/// A context manager that a call of the attribute with these keywords makes.
Ref context_of(const char* module, const char* name, const Ref& settings) {
  Ref made_by = checked(PyObject_GetAttrString(checked(imported(module)).get(), name));
  return checked(PyObject_VectorcallDict(made_by.get(), nullptr, 0, settings.get()));
}

/// Calls within a context manager, which leaves as after a call without an exception; the call's own is thrown.
template <class Call>
Ref call_within(PyObject* context, Call&& call) {
  checked(PyObject_CallMethod(context, "__enter__", nullptr));
  Ref answer, exception;
  try {
    answer = call();
  } catch (const PythonError&) {
    exception = compat::take_exception();
  }
  if (!Ref::steal(PyObject_CallMethod(context, "__exit__", "OOO", Py_None, Py_None, Py_None))) {
    Ref later = compat::take_exception();  // an interrupt
    if (!exception) exception = std::move(later);
  }
  if (!exception) return answer;
  compat::set_exception(std::move(exception));
  throw_python_error();
}

/// Calls under np.errstate(all=mode), with other modes of some kinds.
template <class Call>
Ref call_under_errstate(const char* mode, const ErrorHandling& others, Call&& call) {
  const KeptErrorHandling kept;
  Ref modes = ErrorHandling{others.ignored, {}}.modes();
  checked(PyDict_SetItemString(modes.get(), "all", checked(PyUnicode_FromString(mode)).get()));
  Ref scope = context_of("numpy", "errstate", modes);
  return call_within(scope.get(), call);
}

/// Calls under a filter of all warnings.
template <class Call>
Ref call_under_filter(const char* action, Call&& call) {
  Ref scope = context_of("warnings", "catch_warnings", checked(Py_BuildValue("{ss}", "action", action)));
  return call_within(scope.get(), call);
}

/// Filters of warnings stay as they are while it lives: modules that torch imports for its meta device add some, for which the program
/// has not asked.
class KeptFilters {
 public:
  KeptFilters() = default;
  KeptFilters(const KeptFilters&) = delete;
  KeptFilters& operator=(const KeptFilters&) = delete;
  ~KeptFilters() {
    const PendingException pending;
    try {
      before_.restore_filters();
    } catch (const PythonError&) {
      PyErr_Clear();
    }
  }

 private:
  WarningState before_;
};

}  // namespace

Ref call_filtered(const char* action, PyObject* callable, PyObject* args, PyObject* kwargs) {
  return call_under_filter(action, [&] { return checked(PyObject_Call(callable, args, kwargs)); });
}

Ref call_quietly(PyObject* callable, PyObject* args, PyObject* kwargs, ops::Flavour flavour) {
  if (flavour == ops::Flavour::torch) {
    const KeptFilters kept;
    return checked(PyObject_Call(callable, args, kwargs));
  }
  return call_under_filter("error", [&] { return call_under_errstate("ignore", {}, [&] { return checked(PyObject_Call(callable, args, kwargs)); }); });
}

Ref call_for_good(PyObject* callable, PyObject* args, PyObject* kwargs, ops::Flavour flavour, const ErrorHandling& handling) {
  if (flavour == ops::Flavour::torch) return checked(PyObject_Call(callable, args, kwargs));
  return call_for_good([&] { return call_filtered("error", callable, args, kwargs); }, handling);
}

Ref call_for_good(const std::function<Ref()>& call, const ErrorHandling& handling) {
  try {
    return call_under_errstate("raise", handling, call);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_FloatingPointError) && !PyErr_ExceptionMatches(PyExc_Warning)) throw;
    PyErr_Clear();
    throw GraphBreak("a call on constants of which NumPy warns every time");
  }
}

}  // namespace tenon::python
