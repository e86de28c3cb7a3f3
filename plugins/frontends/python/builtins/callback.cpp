// Python functions handed to C code during a capture: the C code calls back into the evaluator.
#include "python/builtins/table.h"
#include "python/evaluator/evaluator.h"
#include "python/heap/names.h"

namespace tenon::python {
namespace {

struct Callback {
  PyObject_HEAD
  PyObject* function;  // or iterator, or sequence
  Py_ssize_t index;
};

PyObject* call_back(PyObject* self, PyObject* args, PyObject* kwargs) {
  Evaluator* evaluator = current_evaluator();
  PyObject* function = reinterpret_cast<Callback*>(self)->function;
  if (evaluator == nullptr) return PyObject_Call(function, args, kwargs);
  try {
    Arguments arguments;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(args); ++at) arguments.values.push_back(evaluator->heap().adopt(Ref::borrow(PyTuple_GET_ITEM(args, at))));
    if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) > 0) throw GraphBreak("C code calls back with named arguments");
    return evaluator->call_now(function, std::move(arguments)).release();
  } catch (const GraphBreak& graph_break) {
    set_break_signal(graph_break);
  } catch (const PythonError&) {
  }
  return nullptr;
}

void deallocate(PyObject* self) {
  Py_DECREF(reinterpret_cast<Callback*>(self)->function);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject* callback_type() {
  static PyTypeObject type = [] {
    PyTypeObject made = {PyVarObject_HEAD_INIT(nullptr, 0)};
    made.tp_name = "tenon.callback";
    made.tp_basicsize = sizeof(Callback);
    made.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    made.tp_call = call_back;
    made.tp_dealloc = deallocate;
    return made;
  }();
  static const int ready = PyType_Ready(&type);
  checked(ready);
  return &type;
}

PyObject* next_step(PyObject* self) {
  Evaluator* evaluator = current_evaluator();
  PyObject* iterator = reinterpret_cast<Callback*>(self)->function;
  if (evaluator == nullptr) return Py_TYPE(iterator)->tp_iternext(iterator);
  try {
    return evaluator->next_of(iterator).release();
  } catch (const GraphBreak& graph_break) {
    set_break_signal(graph_break);
  } catch (const PythonError&) {
  }
  return nullptr;
}

PyTypeObject* iterator_type() {
  static PyTypeObject type = [] {
    PyTypeObject made = {PyVarObject_HEAD_INIT(nullptr, 0)};
    made.tp_name = "tenon.evaluated_iterator";
    made.tp_basicsize = sizeof(Callback);
    made.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    made.tp_iter = PyObject_SelfIter;
    made.tp_iternext = next_step;
    made.tp_dealloc = deallocate;
    return made;
  }();
  static const int ready = PyType_Ready(&type);
  checked(ready);
  return &type;
}

PyObject* next_by_index(PyObject* self) {
  Evaluator* evaluator = current_evaluator();
  auto* place = reinterpret_cast<Callback*>(self);
  if (evaluator == nullptr || place->index < 0) return nullptr;
  try {
    Ref index = checked(PyLong_FromSsize_t(place->index++));
    return evaluator->load_item(place->function, index.get()).release();
  } catch (const GraphBreak& graph_break) {
    set_break_signal(graph_break);
  } catch (const PythonError&) {
    if (PyErr_ExceptionMatches(PyExc_IndexError) || PyErr_ExceptionMatches(PyExc_StopIteration)) {
      PyErr_Clear();
      place->index = -1;
    }
  }
  return nullptr;
}

PyTypeObject* index_iterator_type() {
  static PyTypeObject type = [] {
    PyTypeObject made = {PyVarObject_HEAD_INIT(nullptr, 0)};
    made.tp_name = "tenon.evaluated_index_iterator";
    made.tp_basicsize = sizeof(Callback);
    made.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    made.tp_iter = PyObject_SelfIter;
    made.tp_iternext = next_by_index;
    made.tp_dealloc = deallocate;
    return made;
  }();
  static const int ready = PyType_Ready(&type);
  checked(ready);
  return &type;
}

Ref holding(PyTypeObject* type, PyObject* object) {
  Ref made = checked(type->tp_alloc(type, 0));
  reinterpret_cast<Callback*>(made.get())->function = Py_NewRef(object);
  return made;
}

}  // namespace

Ref iterator_by_index(Evaluator& evaluator, PyObject* owner) { return evaluator.heap().born(holding(index_iterator_type(), owner)); }

Ref iterator_for(Evaluator& evaluator, Ref iterator) {
  PyObject* method = evaluator.heap().type_attribute(iterator.type(), names().__next__);
  return is_python_function(method) ? evaluator.heap().born(holding(iterator_type(), iterator.get())) : iterator;
}

Ref callback_for(Evaluator&, PyObject* function) {
  const bool evaluated = PyFunction_Check(function) || PyMethod_Check(function) || Py_TYPE(function) == library_types().partial || is_getter(function) ||
                         (PyType_Check(function) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(function), Py_TPFLAGS_HEAPTYPE)) || is_builtin_callable(function);
  if (!evaluated) return Ref::borrow(function);
  return holding(callback_type(), function);
}

}  // namespace tenon::python
