// Adds the tensor part of the frontend to the extension module.
#include "python/module/module.h"
#include "python/tensors/array_stand_in.h"
#include "python/tensors/numpy_api.h"

namespace tenon::python {

bool add_tensor_types(PyObject*) { return import_numpy() && ready_array_stand_in_types(); }

}  // namespace tenon::python
