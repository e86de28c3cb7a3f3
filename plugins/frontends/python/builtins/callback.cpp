// Python functions handed to C code during a capture: the C code calls back into the evaluator.
#include <utility>

#include "python/builtins/table.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"
#include "python/objects/object_type.h"

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
  return guarded([&] {
    Arguments arguments;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(args); ++at) arguments.values.push_back(evaluator->heap().adopt(Ref::borrow(PyTuple_GET_ITEM(args, at))));
    if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) > 0) throw GraphBreak("C code calls back with named arguments", kCodeInCHint);
    return evaluator->call_now(function, std::move(arguments));
  });
}

void deallocate(PyObject* self) {
  Py_DECREF(reinterpret_cast<Callback*>(self)->function);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject* callback_type() {
  return static_type<Callback>("Function", [](PyTypeObject& type) {
    type.tp_call = call_back;
    type.tp_dealloc = deallocate;
  });
}

PyObject* next_step(PyObject* self) {
  Evaluator* evaluator = current_evaluator();
  PyObject* iterator = reinterpret_cast<Callback*>(self)->function;
  if (evaluator == nullptr) return Py_TYPE(iterator)->tp_iternext(iterator);
  return guarded([&] { return evaluator->iteration().next_or_stop(iterator); });
}

PyObject* next_element(PyObject* self) {
  Evaluator* evaluator = current_evaluator();
  if (evaluator == nullptr) return next_step(self);
  return guarded([&] {
    Ref item = evaluator->iteration().next_or_stop(reinterpret_cast<Callback*>(self)->function);
    // A copy would be another object to whoever gets it from the C code.
    if (evaluator->heap().holds_tensor(item.get())) throw GraphBreak("C code reads the tensors in the items of an iterator", kCodeInCHint);
    return item;
  });
}

PyTypeObject* element_iterator_type() {
  return static_type<Callback>("ElementIterator", [](PyTypeObject& type) {
    type.tp_iter = PyObject_SelfIter;
    type.tp_iternext = next_element;
    type.tp_dealloc = deallocate;
  });
}

PyTypeObject* iterator_type() {
  return static_type<Callback>("Iterator", [](PyTypeObject& type) {
    type.tp_iter = PyObject_SelfIter;
    type.tp_iternext = next_step;
    type.tp_dealloc = deallocate;
  });
}

/// The item at the iterator's place, which then moves by `step`; nothing past the last one, or from the first error that says so.
template <Py_ssize_t step>
PyObject* next_by_index(PyObject* self) {
  Evaluator* evaluator = current_evaluator();
  auto* place = reinterpret_cast<Callback*>(self);
  if (evaluator == nullptr || place->index < 0) return nullptr;
  return guarded([&]() -> Ref {
    try {
      Ref index = checked(PyLong_FromSsize_t(std::exchange(place->index, place->index + step)));
      return evaluator->items().load(place->function, index.get());
    } catch (const PythonError&) {
      if (!PyErr_ExceptionMatches(PyExc_IndexError) && !PyErr_ExceptionMatches(PyExc_StopIteration)) throw;
      PyErr_Clear();
      place->index = -1;
      return {};
    }
  });
}

PyTypeObject* index_iterator_type() {
  return static_type<Callback>("IndexIterator", [](PyTypeObject& type) {
    type.tp_iter = PyObject_SelfIter;
    type.tp_iternext = next_by_index<1>;
    type.tp_dealloc = deallocate;
  });
}

/// As reversed.__length_hint__: the object is asked for its length again.
PyObject* items_left(PyObject* self, PyObject*) {
  Evaluator* evaluator = current_evaluator();
  auto* place = reinterpret_cast<Callback*>(self);
  if (evaluator == nullptr || place->index < 0) return PyLong_FromLong(0);
  return guarded([&] {
    const Py_ssize_t left = place->index + 1;
    return checked(PyLong_FromSsize_t(evaluator->operators().length(place->function) < left ? 0 : left));
  });
}

PyTypeObject* reverse_index_iterator_type() {
  static PyMethodDef methods[] = {{"__length_hint__", items_left, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
  return static_type<Callback>("ReverseIndexIterator", [](PyTypeObject& type) {
    type.tp_methods = methods;
    type.tp_iter = PyObject_SelfIter;
    type.tp_iternext = next_by_index<-1>;
    type.tp_dealloc = deallocate;
  });
}

Ref holding(PyTypeObject* type, PyObject* object) {
  Ref made = checked(type->tp_alloc(type, 0));
  reinterpret_cast<Callback*>(made.get())->function = Py_NewRef(object);
  return made;
}

}  // namespace

Ref iterator_by_index(Evaluator& evaluator, PyObject* owner) { return evaluator.heap().born(holding(index_iterator_type(), owner)); }

Ref reverse_iterator_by_index(Evaluator& evaluator, PyObject* owner) {
  Ref iterator = holding(reverse_index_iterator_type(), owner);
  reinterpret_cast<Callback*>(iterator.get())->index = evaluator.operators().length(owner) - 1;
  return evaluator.heap().born(std::move(iterator));
}

PyTypeObject* type_of_index_iterator(PyObject* object) {
  if (Py_TYPE(object) == index_iterator_type()) return &PySeqIter_Type;
  return Py_TYPE(object) == reverse_index_iterator_type() ? &PyReversed_Type : nullptr;
}

Ref iterator_for(Evaluator& evaluator, Ref iterator) {
  PyObject* method = evaluator.heap().type_attribute(iterator.type(), names().__next__);
  return is_python_function(method) ? evaluator.heap().born(holding(iterator_type(), iterator.get())) : iterator;
}

Ref iterator_over_elements(Evaluator& evaluator, Ref iterator) { return evaluator.heap().born(holding(element_iterator_type(), iterator.get())); }

Ref callback_for(Evaluator&, PyObject* function) {
  return PyCallable_Check(function) ? holding(callback_type(), function) : Ref::borrow(function);
}

}  // namespace tenon::python
