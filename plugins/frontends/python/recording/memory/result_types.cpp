#include "python/recording/memory/result_types.h"

#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"

namespace tenon::python {

bool kwargs_name_a_layout(PyObject* kwargs) {
  if (!kwargs) return false;
  PyObject* format = PyDict_GetItemString(kwargs, "memory_format");
  const TorchLibrary* torch = known_torch_library();
  const bool keeps = !format || format == Py_None || (torch && format == torch->preserve_format.get());
  return !keeps || PyDict_GetItemString(kwargs, "order");
}

bool is_empty_sequence(PyObject* answer) { return (PyTuple_CheckExact(answer) || PyList_CheckExact(answer)) && PySequence_Fast_GET_SIZE(answer) == 0; }

bool is_pointwise(const ForeignFunction& function) { return function.op->body || (function.ufunc && !function.has(Trait::product)); }

void set_result_type(TensorSpec& spec, const ForeignFunction& function, bool all_scalars) {
  if (function.flavour == ops::Flavour::torch) {
    spec.kind = TensorKind::torch;
    spec.type = reinterpret_cast<PyTypeObject*>(known_torch_library()->tensor.get());
    return;
  }
  const bool scalar = spec.shape.empty() && ((all_scalars && function.method) || !function.has(Trait::gives_arrays));
  spec.kind = scalar ? TensorKind::scalar : TensorKind::array;
  spec.type = &PyArray_Type;
  if (!scalar) return;
  Ref descriptor = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(numpy_type(spec.dtype))));
  spec.type = reinterpret_cast<PyArray_Descr*>(descriptor.get())->typeobj;
}

}  // namespace tenon::python
