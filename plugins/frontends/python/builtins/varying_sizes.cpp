#include "python/builtins/varying_sizes.h"

#include <opcode.h>

#include <string_view>

#include "python/builtins/handlers.h"
#include "python/builtins/table.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

bool is_sizes_class(PyTypeObject* type) { return std::string_view(type->tp_name) == "torch.Size" && PyType_IsSubtype(type, &PyTuple_Type); }

Ref as_sizes(PyTypeObject* type, Ref tuple) { return checked(PyTuple_Type.tp_new(type, checked(PyTuple_Pack(1, tuple.get())).get(), nullptr)); }

Ref product(Evaluator& evaluator, PyObject* items, Ref total) {
  for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(items); ++at) total = evaluator.operators().binary(NB_MULTIPLY, total.get(), PySequence_Fast_GET_ITEM(items, at));
  return total;
}

}  // namespace

std::optional<Ref> slice_of_sizes(Evaluator& evaluator, PyObject* sizes, PyObject* slice) {
  if (!is_sizes_class(Py_TYPE(sizes)) || !evaluator.hidden_calls().holds_number(sizes)) return std::nullopt;
  return as_sizes(Py_TYPE(sizes), checked(PyTuple_Type.tp_as_mapping->mp_subscript(sizes, slice)));
}

std::optional<Ref> operator_of_sizes(Evaluator& evaluator, int operation, PyObject* left, PyObject* right) {
  PyTypeObject* type = is_sizes_class(Py_TYPE(left)) ? Py_TYPE(left) : Py_TYPE(right);
  if (!is_sizes_class(type) || (!evaluator.hidden_calls().holds_number(left) && !evaluator.hidden_calls().holds_number(right))) return std::nullopt;
  const PySequenceMethods& tuples = *PyTuple_Type.tp_as_sequence;
  if (operation == NB_ADD || operation == NB_INPLACE_ADD) {
    if (!PyTuple_Check(left) || !PyTuple_Check(right)) return std::nullopt;
    evaluator.heap().expose(left);
    evaluator.heap().expose(right);
    return as_sizes(type, checked(tuples.sq_concat(left, right)));
  }
  if (operation != NB_MULTIPLY && operation != NB_INPLACE_MULTIPLY) return std::nullopt;
  PyObject* count = Py_TYPE(left) == type ? right : left;
  if (!PyLong_Check(count)) return std::nullopt;
  const Py_ssize_t times = PyLong_AsSsize_t(count);
  if (times == -1 && PyErr_Occurred()) throw_python_error();
  return as_sizes(type, checked(tuples.sq_repeat(Py_TYPE(left) == type ? left : right, times)));
}

std::optional<Ref> make_sizes(Evaluator& evaluator, PyTypeObject* type, const Arguments& arguments) {
  if (!is_sizes_class(type) || arguments.named() != 0 || arguments.positional() != 1) return std::nullopt;
  PyObject* given = arguments[0];
  if ((!PyTuple_Check(given) && !PyList_CheckExact(given)) || !evaluator.hidden_calls().holds_number(given)) return std::nullopt;
  for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(given); ++at) {
    PyObject* item = PySequence_Fast_GET_ITEM(given, at);
    if (!PyLong_CheckExact(item) && !(evaluator.heap().is_number(item) && evaluator.visible_type(item) == &PyLong_Type)) return std::nullopt;
  }
  evaluator.heap().expose(given);
  return as_sizes(type, checked(PySequence_Tuple(given)));
}

std::optional<Ref> call_method_of_sizes(Evaluator& evaluator, PyObject* sizes, PyObject* name) {
  const bool asked = is_sizes_class(Py_TYPE(sizes)) && PyUnicode_CompareWithASCIIString(name, "numel") == 0;
  if (!asked || !evaluator.hidden_calls().holds_number(sizes)) return std::nullopt;
  return product(evaluator, sizes, checked(PyLong_FromLong(1)));
}

Handled math_product(Evaluator& evaluator, Arguments& arguments) {
  static PyObject* const product_of_items = checked(PyObject_GetAttrString(checked(imported("math")).get(), "prod")).release();
  const bool start_by_name = only_start_is_named(arguments);
  const auto varies = [&](PyObject* items) {
    return (PyTuple_Check(items) || PyList_CheckExact(items)) && (evaluator.hidden_calls().holds_number(items) || (start_by_name && evaluator.hidden_calls().holds_number(arguments[1])));
  };
  if (arguments.positional() != 1 || (arguments.named() != 0 && !start_by_name) || !varies(arguments[0]))
    return run_listed(evaluator, product_of_items, {BuiltinClass::element_calling}, arguments);
  evaluator.heap().expose(arguments[0]);
  return product(evaluator, arguments[0], start_by_name ? Ref::borrow(arguments[1]) : checked(PyLong_FromLong(1)));
}

}  // namespace tenon::python
