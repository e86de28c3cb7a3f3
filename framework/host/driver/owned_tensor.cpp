#include "host/driver/owned_tensor.h"

#include "core/memory/row_major.h"
#include "host/machine/strided_copy.h"
#include "host/plugins/contact/crossing.h"

namespace tenon::host {
namespace {

struct OwnedTensor {
  DLManagedTensorVersioned managed{};
  std::vector<std::int64_t> shape, strides;
  std::shared_ptr<void> owner;
  Device& device;
  void* stream;
  std::size_t bytes = 0;
  void* memory = nullptr;

  ~OwnedTensor() { device.release(memory, bytes, stream); }
};

}  // namespace

TensorPointer make_tensor(Device& device, std::shared_ptr<void> owner, DType dtype, std::vector<std::int64_t> shape,
                          std::optional<std::vector<std::int64_t>> strides) {
  auto tensor = std::unique_ptr<OwnedTensor>(new OwnedTensor{{}, {}, {}, device.is_host() ? nullptr : std::move(owner), device, device.current_stream()});
  tensor->strides = strides ? *std::move(strides) : row_major_strides(shape);
  tensor->shape = std::move(shape);
  tensor->bytes = extent_bytes(tensor->shape, tensor->strides, size_of(dtype));
  tensor->memory = device.allocate(tensor->bytes, tensor->stream);
  tensor->managed.version = {1, 0};
  tensor->managed.manager_ctx = tensor.get();
  tensor->managed.deleter = [](DLManagedTensorVersioned* self) { delete static_cast<OwnedTensor*>(self->manager_ctx); };
  tensor->managed.dl_tensor = {tensor->memory, device.id(), static_cast<std::int32_t>(tensor->shape.size()), dlpack_type(dtype),
                               tensor->shape.data(), tensor->strides.data(), 0};
  return TensorPointer(&tensor.release()->managed);
}

}  // namespace tenon::host
