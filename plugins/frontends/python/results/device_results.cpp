#include "python/results/device_results.h"

#include <memory>
#include <vector>

#include "core/abi/dlpack_types.h"
#include "python/library/torch_device.h"
#include "python/library/torch_exports.h"
#include "python/objects/graph_break.h"
#include "python/results/torch_results.h"

namespace tenon::python {
namespace {

/// torch.empty_strided, which raises what torch raises.
Ref empty_strided(const TorchDevice& device, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  const TorchLibrary& torch = *known_torch_library();
  Ref kwargs = checked(PyDict_New());
  checked(PyDict_SetItemString(kwargs.get(), "dtype", torch.dtypes[static_cast<std::size_t>(dtype)].get()));
  checked(PyDict_SetItemString(kwargs.get(), "device", device.object.get()));
  Ref args = checked(PyTuple_Pack(2, integer_tuple(sizes).get(), integer_tuple(strides).get()));
  return checked(PyObject_Call(torch.empty_strided.get(), args.get(), kwargs.get()));
}

/// What DLPack needs of a tensor, freed by whoever takes it.
struct LentTensor {
  DLManagedTensorVersioned managed{};
  std::vector<std::int64_t> sizes, strides;
};

}  // namespace

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
    Ref tensor = empty_strided(device, dtype, sizes, strides);
    data = PyLong_AsVoidPtr(checked(PyObject_CallMethod(tensor.get(), "data_ptr", nullptr)).get());
    return tensor.release();
  } catch (const PythonError&) {
    return nullptr;
  }
}

Ref device_tensor_over(ir::Device device, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, void* data) {
  auto lent = std::make_unique<LentTensor>();
  lent->sizes.assign(sizes.begin(), sizes.end());
  lent->strides.assign(strides.begin(), strides.end());
  lent->managed.version = {1, 0};
  lent->managed.manager_ctx = lent.get();
  lent->managed.deleter = [](DLManagedTensorVersioned* self) { delete static_cast<LentTensor*>(self->manager_ctx); };
  lent->managed.dl_tensor = {data, ir::dlpack_device(device), static_cast<std::int32_t>(sizes.size()), dlpack_type(dtype), lent->sizes.data(), lent->strides.data(), 0};
  void* object = nullptr;
  if (torch_exports().take_over(&lent->managed, &object) != 0) throw PythonError();
  lent.release();  // torch's from now on
  return Ref::steal(static_cast<PyObject*>(object));
}

}  // namespace tenon::python
