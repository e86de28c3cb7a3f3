#include "python/call/number_results.h"

#include "python/library/numpy_api.h"
#include "python/recording/graph/recorded_graph.h"

namespace tenon::python {
namespace {

constexpr int kDeepest = 4;          // containers in each other
constexpr Py_ssize_t kFewElements = 8;

Py_ssize_t element_count(PyObject* tensor) {
  if (PyArray_Check(tensor)) return PyArray_SIZE(reinterpret_cast<PyArrayObject*>(tensor));
  Ref count = Ref::steal(PyObject_CallMethod(tensor, "numel", nullptr));
  const Py_ssize_t found = count ? PyLong_AsSsize_t(count.get()) : -1;
  PyErr_Clear();
  return found < 0 ? kFewElements + 1 : found;
}

bool is_numbers(PyObject* object, int depth);

bool are_numbers(PyObject* sequence, int depth) {
  for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(sequence); ++at)
    if (!is_numbers(PySequence_Fast_GET_ITEM(sequence, at), depth)) return false;
  return true;
}

bool is_numbers(PyObject* object, int depth) {
  if (object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object)) return true;
  if (is_tensor(object)) return element_count(object) <= kFewElements;
  if (depth == kDeepest) return false;
  if (PyTuple_Check(object) || PyList_CheckExact(object)) return are_numbers(object, depth + 1);
  if (!PyDict_CheckExact(object)) return false;
  PyObject *key = nullptr, *item = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &item);)
    if (!is_numbers(item, depth + 1)) return false;
  return true;
}

}  // namespace

bool holds_numbers_alone(PyObject* object) { return object != Py_None && is_numbers(object, 0); }

}  // namespace tenon::python
