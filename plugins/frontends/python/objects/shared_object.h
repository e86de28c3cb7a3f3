// An object of Python's held from C++ that may let it go on any thread.
#pragma once

#include <memory>

#include "python/objects/gil.h"
#include "python/objects/ref.h"

namespace tenon::python {

inline std::shared_ptr<PyObject> shared(Ref object) {
  return {object.release(), [](PyObject* held) {
            if (!Py_IsInitialized()) return;
            const GilHeld gil;
            Py_DECREF(held);
          }};
}

}  // namespace tenon::python
