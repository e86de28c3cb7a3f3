// Adds the tensor part of the frontend to the extension module.
#include "python/foreign/foreign_names.h"
#include "python/library/numpy_api.h"
#include "python/module/module.h"
#include "python/results/torch_results.h"
#include "python/stand_ins/array_stand_in.h"
#include "python/stand_ins/torch_stand_in.h"

namespace tenon::python {

bool add_tensor_types(PyObject*) {
  when_torch_is_found(make_torch_stand_in_class);
  when_torch_is_found(choose_memory_of_results);
  set_array_stand_ins({array_stand_in_type(), unwrapped_array_method});
  return import_numpy() && ready_array_stand_in_types();
}

}  // namespace tenon::python
