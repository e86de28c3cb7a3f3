#include "python/guards/object_checks.h"

#include "python/guards/guard_set.h"
#include "python/objects/dict_access.h"
#include "python/objects/graph_break.h"
#include "python/objects/library_types.h"

namespace tenon::python::checks {

PyObject* dict_get(PyObject* dict, PyObject* key) noexcept {
  PyObject* value = PyDict_GetItemWithError(dict, key);
  if (value == nullptr && PyErr_Occurred()) PyErr_Clear();
  return value;
}

PyObject* dict_value(PyObject* dict, Py_ssize_t index) noexcept {
  try {
    Ref items = items_past_override(dict);  // the dict holds the value when they are gone
    return index < PyList_GET_SIZE(items.get()) ? PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), index), 1) : nullptr;
  } catch (const PythonError&) {
    PyErr_Clear();
    return nullptr;
  }
}

namespace {

/// An OrderedDict, whose order is not that of the dict below it.
bool same_ordered_keys(PyObject* dict, PyObject* expected) noexcept {
  try {
    Ref items = items_past_override(dict);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
      if (!same_constant(PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 0), PyTuple_GET_ITEM(expected, i))) return false;
    return true;
  } catch (const std::exception&) {
    PyErr_Clear();
    return false;
  }
}

}  // namespace

bool same_keys(PyObject* dict, PyObject* expected) noexcept {
  if (PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(expected)) return false;
  if (keeps_own_order(dict)) return same_ordered_keys(dict, expected);
  Py_ssize_t position = 0, index = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict, &position, &key, &value)) {
    if (!same_constant(key, PyTuple_GET_ITEM(expected, index++))) return false;
  }
  return true;
}

Py_ssize_t length_of(PyObject* object) noexcept {
  if (PyList_Check(object)) return PyList_GET_SIZE(object);
  if (PyTuple_Check(object)) return PyTuple_GET_SIZE(object);
  if (PyDict_Check(object)) return PyDict_GET_SIZE(object);
  if (PyAnySet_Check(object)) return PySet_GET_SIZE(object);
  PyTypeObject* const deque = library_types().deque;
  const Py_ssize_t size = PyObject_TypeCheck(object, deque) ? deque->tp_as_sequence->sq_length(object) : PyObject_Size(object);
  if (size < 0) PyErr_Clear();
  return size;
}

PyObject* sequence_item(PyObject* sequence, Py_ssize_t index) noexcept {
  PyTypeObject* const deque = library_types().deque;
  return PyObject_TypeCheck(sequence, deque) ? deque->tp_as_sequence->sq_item(sequence, index) : PySequence_GetItem(sequence, index);
}

PyObject* list_item(PyObject* list, std::int64_t index) noexcept {
  if (index < 0) index += PyList_GET_SIZE(list);
  return index >= 0 && index < PyList_GET_SIZE(list) ? PyList_GET_ITEM(list, index) : nullptr;
}

bool same_names(PyObject* names, PyObject* expected) noexcept {
  const Py_ssize_t count = expected ? PyTuple_GET_SIZE(expected) : 0;
  if ((names ? PyTuple_GET_SIZE(names) : 0) != count) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *a = PyTuple_GET_ITEM(names, i), *b = PyTuple_GET_ITEM(expected, i);
    if (a != b && PyUnicode_Compare(a, b) != 0) return false;
  }
  return true;
}

bool same_function_parts(PyObject* function, PyObject* expected) noexcept {
  if (!PyFunction_Check(function)) return false;
  auto* parts = reinterpret_cast<PyFunctionObject*>(function);
  const auto same = [](PyObject* part, PyObject* wanted) {
    return part == wanted || (part == nullptr ? wanted == Py_None : wanted == Py_Ellipsis);
  };
  return parts->func_code == PyTuple_GET_ITEM(expected, 0) && same(parts->func_defaults, PyTuple_GET_ITEM(expected, 1)) &&
         same(parts->func_kwdefaults, PyTuple_GET_ITEM(expected, 2)) && parts->func_globals == PyTuple_GET_ITEM(expected, 3);
}

bool same_items_of_set(PyObject* value, PyObject* expected) noexcept {
  if (!PyAnySet_Check(value) || PySet_GET_SIZE(value) != PyTuple_GET_SIZE(expected)) return false;
  Ref iterator = Ref::steal(PyObject_GetIter(value));
  bool same = static_cast<bool>(iterator);
  for (Py_ssize_t at = 0; same && at < PyTuple_GET_SIZE(expected); ++at) {
    Ref item = Ref::steal(PyIter_Next(iterator.get()));
    same = item && same_constant(item.get(), PyTuple_GET_ITEM(expected, at));
  }
  if (PyErr_Occurred()) PyErr_Clear();
  return same;
}

}  // namespace tenon::python::checks
