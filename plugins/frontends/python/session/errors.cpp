#include "python/session/errors.h"

#include "tenon/host.h"

namespace tenon::python {
namespace {

PyObject* g_classes[5] = {};  // live as long as the process

PyObject* class_of(ErrorClass kind) {
  PyObject* found = g_classes[static_cast<std::size_t>(kind)];
  return found ? found : PyExc_RuntimeError;
}

ErrorClass class_of_code(int code) {
  switch (code) {
    case TENON_INVALID_ARGUMENT:
    case TENON_NOT_FOUND: return ErrorClass::config;
    case TENON_PLUGIN_FAILED:
    case TENON_INCOMPATIBLE: return ErrorClass::plugin;
    default: return ErrorClass::error;
  }
}

}  // namespace

void set_error(ErrorClass kind, const std::string& message) { PyErr_SetString(class_of(kind), message.c_str()); }

void set_error_from_current(ErrorClass kind, const std::string& message) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  PyObject* said = value ? PyObject_Str(value) : nullptr;
  if (!said) PyErr_Clear();
  PyObject* made = PyObject_CallFunction(class_of(kind), "N", PyUnicode_FromFormat("%s: %s: %V", message.c_str(), Py_TYPE(value)->tp_name, said, "it cannot be shown"));
  Py_XDECREF(said);
  if (!made) {
    Py_XDECREF(value);
    return;
  }
  PyException_SetContext(made, Py_XNewRef(value));
  PyException_SetCause(made, value);
  PyErr_SetObject(class_of(kind), made);
  Py_DECREF(made);
}

void set_host_error() {
  const TenonFailure* failure = tenon_last_error();
  if (!failure) {
    set_error(ErrorClass::error, "libtenon failed without a reason");
    return;
  }
  std::string text = failure->text ? failure->text : "";
  if (failure->plugin && *failure->plugin && text.find(failure->plugin) == std::string::npos) text = std::string(failure->plugin) + ": " + text;
  set_error(class_of_code(failure->code), text);
}

void take_error_classes(Ref classes[5]) {
  for (std::size_t i = 0; i < 5; ++i) Py_XSETREF(g_classes[i], classes[i].release());
}

}  // namespace tenon::python
