#include "python/tensors/random_state.h"

#include "python/evaluator/graph_break.h"
#include "python/heap/pending_exception.h"
#include "python/tensors/torch_library.h"

namespace tenon::python {

Ref generator_state() { return checked(PyObject_CallMethod(torch_library()->module.get(), "get_rng_state", nullptr)); }

void restore_generator(PyObject* state) noexcept {
  PendingException pending;
  Ref done = Ref::steal(PyObject_CallMethod(known_torch_library()->module.get(), "set_rng_state", "O", state));
  if (!done) PyErr_WriteUnraisable(state);
}

}  // namespace tenon::python
