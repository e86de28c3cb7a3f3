#include "python/results/device_results.h"

#include "python/library/torch_device.h"
#include "python/library/torch_exports.h"
#include "python/objects/graph_break.h"
#include "python/results/torch_results.h"

namespace tenon::python {
PyObject* new_device_tensor(ir::Device id, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, void*& data) {
  const TorchDevice& device = torch_device(id);
  const TorchExports& torch = torch_exports();
  const TorchLibrary& library = *known_torch_library();
  TorchExports::Tensor made = nullptr;
  const std::int32_t scalar_type = torch.scalar_types[static_cast<std::size_t>(dtype)];
  if (torch.empty_strided(static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(), scalar_type, device.torch_type, id.index, &made) == 0) {
    torch.data(made, &data);
    PyObject* object = library.wrap(made);  // which takes the tensor out of its place on the heap
    torch.delete_tensor(made);
    return object;
  }
  try {
    Ref tensor = empty_strided(library, device.object.get(), dtype, sizes, strides);
    data = PyLong_AsVoidPtr(checked(PyObject_CallMethod(tensor.get(), "data_ptr", nullptr)).get());
    return tensor.release();
  } catch (const PythonError&) {
    return nullptr;
  }
}

Ref device_tensor_over(ir::Device device, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, void* data) {
  DLManagedTensorVersioned* lent = lent_memory(device, dtype, sizes, strides, data);
  void* object = nullptr;
  if (torch_exports().take_over(lent, &object) != 0) {
    lent->deleter(lent);
    throw PythonError();
  }
  return Ref::steal(static_cast<PyObject*>(object));
}

}  // namespace tenon::python
