// Stand-ins for NumPy arrays and scalars: objects of ours whose every use comes back to the recorder.
#pragma once

#include "python/objects/ref.h"

namespace tenon::python {

/// The type of the stand-ins. It has no state: the recorder knows them by address.
PyTypeObject* array_stand_in_type();

Ref make_array_stand_in();

/// A method of arrays as found on a stand-in is called through a wrapper of ours; this gives the numpy.ndarray descriptor inside.
/// Gives the object itself when it is no such wrapper.
PyObject* unwrapped_array_method(PyObject* callable);

/// Readies the types. False with an exception set when that fails.
bool ready_array_stand_in_types();

}  // namespace tenon::python
