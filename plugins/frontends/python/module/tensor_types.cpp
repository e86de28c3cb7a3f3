// Adds the tensor part of the frontend to the extension module.
#include "python/library/numpy_api.h"
#include "python/module/module.h"
#include "python/stand_ins/array_stand_in.h"

namespace tenon::python {

bool add_tensor_types(PyObject*) { return import_numpy() && ready_array_stand_in_types(); }

}  // namespace tenon::python
