// The state of torch's default generator.
#pragma once

#include "python/heap/ref.h"

namespace tenon::python {

/// A copy of the state, as torch.get_rng_state gives it. Throws PythonError.
Ref generator_state();

/// Puts it back. Keeps an exception that is set.
void restore_generator(PyObject* state) noexcept;

}  // namespace tenon::python
