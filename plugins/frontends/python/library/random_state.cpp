#include "python/library/random_state.h"

#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"

namespace tenon::python {
namespace {

/// Those of the cards that the program has used: torch makes them all at once, and keeps them.
Ref generators_of_cards() {
  static PyObject* known = nullptr;
  if (known) return Ref::borrow(known);
  Ref cards = Ref::steal(PyObject_GetAttrString(known_torch_library()->module.get(), "cuda"));
  Ref generators = cards ? Ref::steal(PyObject_GetAttrString(cards.get(), "default_generators")) : Ref();
  if (!generators) PyErr_Clear();
  if (!generators || !PyTuple_Check(generators.get())) return checked(PyTuple_New(0));
  if (PyTuple_GET_SIZE(generators.get()) > 0) known = Py_NewRef(generators.get());
  return generators;
}

/// How far each of them is; none while torch captures, when they may not be asked.
Ref offsets_of_cards() {
  static PyObject* const get_offset = PyUnicode_InternFromString("get_offset");
  const Ref generators = generators_of_cards();
  Ref offsets = checked(PyList_New(0));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(generators.get()); ++i) {
    Ref offset = Ref::steal(PyObject_CallMethodNoArgs(PyTuple_GET_ITEM(generators.get(), i), get_offset));
    if (!offset) return PyErr_Clear(), checked(PyList_New(0));
    checked(PyList_Append(offsets.get(), offset.get()));
  }
  return offsets;
}

}  // namespace

Ref generator_state() {
  Ref host = checked(PyObject_CallMethod(torch_library()->module.get(), "get_rng_state", nullptr));
  return checked(PyTuple_Pack(2, host.get(), offsets_of_cards().get()));
}

Ref generator_state_of_cards() { return checked(PyTuple_Pack(2, Py_None, offsets_of_cards().get())); }

void restore_generator(PyObject* state) noexcept {
  PendingException pending;
  if (PyObject* host = PyTuple_GET_ITEM(state, 0); host != Py_None) {
    Ref done = Ref::steal(PyObject_CallMethod(known_torch_library()->module.get(), "set_rng_state", "O", host));
    if (!done) PyErr_WriteUnraisable(state);
  }
  PyObject* offsets = PyTuple_GET_ITEM(state, 1);
  try {
    const Ref generators = PyList_GET_SIZE(offsets) > 0 ? generators_of_cards() : Ref();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(offsets); ++i)
      checked(PyObject_CallMethod(PyTuple_GET_ITEM(generators.get(), i), "set_offset", "O", PyList_GET_ITEM(offsets, i)));
  } catch (const PythonError&) {
    PyErr_WriteUnraisable(state);
  }
}

bool draws_are_captured() { return checked(PyObject_CallMethod(checked(imported("tenon._philox")).get(), "is_capturing", nullptr)).is(Py_True); }

}  // namespace tenon::python
