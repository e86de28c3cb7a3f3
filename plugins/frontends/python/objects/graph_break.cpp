#include "python/objects/graph_break.h"

#include <utility>

#include "python/objects/pending_exception.h"

namespace tenon::python {
namespace {

constexpr const char *kElements = "elements", *kNumber = "number";  // what a signal says was lacking

/// The exception type of the signal. Derived from BaseException, so that `except Exception` in library code lets it through.
PyObject* signal_type() {
  // Asked for first while an exception is set, which making a class must not meet.
  static PyObject* const type = [] {
    PendingException pending;
    return PyErr_NewException("tenon.GraphBreakSignal", PyExc_BaseException, nullptr);
  }();
  return type;
}

std::string text_of(PyObject* tuple, Py_ssize_t index) {
  if (tuple == nullptr || !PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) <= index) return {};
  const char* text = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple, index));
  if (text == nullptr) PyErr_Clear();
  return text ? text : "";
}

}  // namespace

void set_break_signal(const GraphBreak& graph_break) {
  const char* lacks = dynamic_cast<const ElementsNeeded*>(&graph_break) ? kElements : dynamic_cast<const NumberNeeded*>(&graph_break) ? kNumber : "";
  Ref arguments = Ref::steal(Py_BuildValue("(sss)", graph_break.reason().c_str(), graph_break.hint().c_str(), lacks));
  if (arguments) PyErr_SetObject(signal_type(), arguments.get());
}

void set_break_signal(const std::string& reason, const std::string& hint) { set_break_signal(GraphBreak(reason, hint)); }

void throw_python_error() {
  if (!PyErr_ExceptionMatches(signal_type())) throw PythonError();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Ref owned_type = Ref::steal(type), owned_value = Ref::steal(value), owned_traceback = Ref::steal(traceback);
  Ref arguments = Ref::steal(PyObject_GetAttrString(value, "args"));
  if (!arguments) PyErr_Clear();
  std::string reason = text_of(arguments.get(), 0), hint = text_of(arguments.get(), 1);
  const std::string lacks = text_of(arguments.get(), 2);
  if (lacks == kElements) throw ElementsNeeded(std::move(reason), std::move(hint));
  if (lacks == kNumber) throw NumberNeeded(std::move(reason), std::move(hint));
  throw GraphBreak(std::move(reason), std::move(hint));
}

}  // namespace tenon::python
