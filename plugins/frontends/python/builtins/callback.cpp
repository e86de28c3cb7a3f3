// Python functions handed to C code during a capture: the C code calls back into the evaluator.
#include "python/builtins/table.h"
#include "python/evaluator/evaluator.h"

namespace tenon::python {
namespace {

struct Callback {
  PyObject_HEAD
  PyObject* function;
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

}  // namespace

Ref callback_for(Evaluator&, PyObject* function) {
  const bool evaluated = PyFunction_Check(function) || PyMethod_Check(function) || Py_TYPE(function) == library_types().partial ||
                         (PyType_Check(function) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(function), Py_TPFLAGS_HEAPTYPE)) || is_builtin_callable(function);
  if (!evaluated) return Ref::borrow(function);
  PyTypeObject* type = callback_type();
  Ref object = checked(type->tp_alloc(type, 0));
  reinterpret_cast<Callback*>(object.get())->function = Py_NewRef(function);
  return object;
}

}  // namespace tenon::python
