#include "python/recording/memory/attention_layout.h"

#include "python/library/torch_device.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"

namespace tenon::python {

std::optional<Extents> attention_strides(StandIns& stand_ins, const ForeignFunction& function, ir::Device device, PyObject* args, PyObject* kwargs) {
  if (!function.op || function.op->name != "scaled_dot_product_attention") return std::nullopt;
  Ref module = checked(imported("tenon._attention"));
  Ref twin_args = stand_ins.with_twins(args);
  Ref twin_kwargs = kwargs ? stand_ins.with_twins(kwargs) : checked(PyDict_New());
  Ref found = checked(PyObject_CallMethod(module.get(), "strides_of_result", "OOO", twin_args.get(), twin_kwargs.get(), torch_device_object(*torch_library(), device)));
  if (found.is(Py_None)) return std::nullopt;
  Extents strides;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(found.get()); ++i) strides.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(found.get(), i)));
  return strides;
}

}  // namespace tenon::python
