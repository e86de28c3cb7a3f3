// What functions give that draw numbers.
#pragma once

#include "python/objects/ref.h"

namespace tenon::python {

/// Whether an object holds numbers, in containers too, and of tensors and arrays only such as are little more than a number.
bool holds_numbers_alone(PyObject* object);

}  // namespace tenon::python
