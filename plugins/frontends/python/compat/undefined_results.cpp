#include "python/compat/undefined_results.h"

#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

/// The attention weights of several heads have three or four dimensions: one that is empty stands for none.
bool stands_for_none(PyObject* weights) {
  Ref rank = checked(PyObject_CallMethod(weights, "dim", nullptr)), count = checked(PyObject_CallMethod(weights, "numel", nullptr));
  return PyLong_AsLong(rank.get()) == 1 && PyLong_AsLong(count.get()) == 0;
}

}  // namespace

Ref with_undefined_results(std::string_view function, Ref answer) {
  if (!function.ends_with("._native_multi_head_attention") || !PyTuple_Check(answer.get()) || PyTuple_GET_SIZE(answer.get()) != 2) return answer;
  PyObject* weights = PyTuple_GET_ITEM(answer.get(), 1);
  if (weights == Py_None || !stands_for_none(weights)) return answer;
  return checked(PyTuple_Pack(2, PyTuple_GET_ITEM(answer.get(), 0), Py_None));
}

}  // namespace tenon::python
