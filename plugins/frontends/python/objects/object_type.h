// What our own Python objects share that C calls during a capture: their slots, and the types that hold those.
#pragma once

#include <Python.h>

#include <string>
#include <type_traits>

#include "python/objects/graph_break.h"

namespace tenon::python {

/// What a slot gives whose body gives a Ref, or anything else.
template <class Body>
using SlotResult = std::conditional_t<std::is_same_v<std::invoke_result_t<Body>, Ref>, PyObject*, std::invoke_result_t<Body>>;

/// Runs the body of a slot. What it throws becomes the Python exception that stands for it, and the slot gives `otherwise`.
template <class Body>
SlotResult<Body> guarded(Body body, SlotResult<Body> otherwise = {}) noexcept {
  try {
    if constexpr (std::is_same_v<std::invoke_result_t<Body>, Ref>) return body().release();
    else return body();
  } catch (const GraphBreak& stop) {
    set_break_signal(stop);
  } catch (const PythonError&) {
  } catch (const std::exception& failure) {
    set_break_signal(failure.what());
  }
  return otherwise;
}

/// How the names end of all types whose objects the program takes for others: what C code says of such a one shows by it.
inline constexpr const char kStandInSuffix[] = "StandIn";

/// The type of Objects that only C++ makes, made at the first call: one for each place that asks. `stands_for` becomes its name with the
/// suffix; `set_slots` gets it before it is ready.
template <class Object, class SetSlots>
PyTypeObject* static_type(const char* stands_for, SetSlots set_slots) {
  static const std::string name = std::string("tenon._tenon.") + stands_for + kStandInSuffix;
  static PyTypeObject type = [&] {
    PyTypeObject made = {PyVarObject_HEAD_INIT(nullptr, 0)};
    made.tp_name = name.c_str();
    made.tp_basicsize = sizeof(Object);
    made.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    made.tp_repr = [](PyObject*) -> PyObject* {
      set_break_signal("what stands for an object of the program is turned into text");
      return nullptr;
    };
    set_slots(made);
    return made;
  }();
  static const int ready = PyType_Ready(&type);
  checked(ready);
  return &type;
}

}  // namespace tenon::python
