#include "python/tensors/random_state.h"

#include "python/evaluator/graph_break.h"
#include "python/tensors/torch_library.h"

namespace tenon::python {

Ref generator_state() { return checked(PyObject_CallMethod(torch_library()->module.get(), "get_rng_state", nullptr)); }

void restore_generator(PyObject* state) noexcept {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref done = Ref::steal(PyObject_CallMethod(known_torch_library()->module.get(), "set_rng_state", "O", state));
  if (!done) PyErr_WriteUnraisable(state);
  PyErr_Restore(type, value, traceback);
}

}  // namespace tenon::python
