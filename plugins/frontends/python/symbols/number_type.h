// What the types share whose objects stand for numbers of the program's while a call is captured: ints that vary, numbers that the graph computes.
#pragma once

#include <Python.h>

#include <new>
#include <utility>

#include "python/objects/object_type.h"

namespace tenon::python {

template <class Value>
struct NumberStandIn {
  PyObject_HEAD
  Value value;
};

/// The value in an object that `make_number` has made of one.
template <class Value>
const Value& value_in(PyObject* object) { return reinterpret_cast<NumberStandIn<Value>*>(object)->value; }

/// What a kind of stand-in answers itself. `methods` ends with an empty one and lives as long as the type.
struct NumberSlots {
  PyNumberMethods arithmetic;
  hashfunc hash;
  reprfunc text;
  getattrofunc attribute;
  richcmpfunc compare;
  PyMethodDef* methods;
};

/// The type of the stand-ins that hold a Value, made at the first call of `make_slots`: one for each kind of value.
template <class Value>
PyTypeObject* number_type(const char* stands_for, const char* doc, NumberSlots (*make_slots)()) {
  return static_type<NumberStandIn<Value>>(stands_for, [&](PyTypeObject& type) {
    static NumberSlots slots = make_slots();
    type.tp_doc = doc;
    type.tp_dealloc = [](PyObject* self) {
      value_in<Value>(self).~Value();
      Py_TYPE(self)->tp_free(self);
    };
    type.tp_as_number = &slots.arithmetic;
    type.tp_hash = slots.hash;
    type.tp_repr = type.tp_str = slots.text;
    type.tp_getattro = slots.attribute;
    type.tp_richcompare = slots.compare;
    type.tp_methods = slots.methods;
  });
}

template <class Value>
Ref make_number(PyTypeObject* type, Value value) {
  auto* made = PyObject_New(NumberStandIn<Value>, type);
  if (!made) throw PythonError();
  new (&made->value) Value(std::move(value));
  return Ref::steal(reinterpret_cast<PyObject*>(made));
}

/// Whether the arguments of `__round__` ask for an int: no digits, or None.
inline bool rounds_to_int(PyObject* digits) { return PyTuple_GET_SIZE(digits) == 0 || PyTuple_GET_ITEM(digits, 0) == Py_None; }

/// Whether `name` asks for the class: the program sees that of the number that is stood for.
inline bool asks_for_class(PyObject* name) { return PyUnicode_CompareWithASCIIString(name, "__class__") == 0; }

/// What numbers of the type do not have either (`__torch_function__`, `__array__`) says nothing of a value, nor does a method of the stand-in's own.
inline bool says_nothing_of_value(PyObject* name, PyTypeObject* type) {
  return PyUnicode_CompareWithASCIIString(name, "__format__") == 0 || !PyObject_HasAttr(reinterpret_cast<PyObject*>(type), name);
}

}  // namespace tenon::python
