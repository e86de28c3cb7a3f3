#include "python/session/settings.h"

#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

PyObject* item(PyObject* dict, const char* name) {
  PyObject* value = PyDict_GetItemString(dict, name);
  return value && value != Py_None ? value : nullptr;
}

std::string text(PyObject* value) {
  const char* utf8 = PyUnicode_AsUTF8(value);
  if (!utf8) throw PythonError();
  return utf8;
}

std::vector<std::string> names(PyObject* sequence) {
  Ref fast = checked(PySequence_Fast(sequence, "backends must be a tuple of names"));
  std::vector<std::string> found;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) found.push_back(text(PySequence_Fast_GET_ITEM(fast.get(), i)));
  return found;
}

Settings read(PyObject* dict) {
  Settings settings;
  if (PyObject* value = item(dict, "backends")) settings.backends = names(value);
  settings.callable = Ref::borrow(item(dict, "callable"));
  if (PyObject* value = item(dict, "name")) settings.name = text(value);
  if (PyObject* value = item(dict, "fullgraph")) settings.fullgraph = checked(PyObject_IsTrue(value)) != 0;
  if (PyObject* value = item(dict, "dynamic")) settings.dynamic = checked(PyObject_IsTrue(value)) != 0;
  if (PyObject* value = item(dict, "options")) settings.options = text(value);
  if (PyObject* value = item(dict, "freeze")) settings.freeze = checked(PyObject_IsTrue(value)) != 0;
  if (PyObject* value = item(dict, "recompile_limit")) settings.recompile_limit = PyLong_AsSize_t(value);
  if (PyErr_Occurred()) throw PythonError();
  return settings;
}

}  // namespace

std::optional<Settings> read_settings(PyObject* dict) {
  if (!PyDict_Check(dict)) {
    PyErr_SetString(PyExc_TypeError, "settings must be a dict");
    return std::nullopt;
  }
  try {
    return read(dict);
  } catch (const PythonError&) {
    return std::nullopt;
  }
}

}  // namespace tenon::python
