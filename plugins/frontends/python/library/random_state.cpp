#include "python/library/random_state.h"

#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/pending_exception.h"

namespace tenon::python {

Ref generator_state() { return checked(PyObject_CallMethod(torch_library()->module.get(), "get_rng_state", nullptr)); }

void restore_generator(PyObject* state) noexcept {
  PendingException pending;
  Ref done = Ref::steal(PyObject_CallMethod(known_torch_library()->module.get(), "set_rng_state", "O", state));
  if (!done) PyErr_WriteUnraisable(state);
}

}  // namespace tenon::python
