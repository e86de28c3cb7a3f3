#include "host/driver/owned_tensor.h"

#include "core/memory/row_major.h"
#include "host/machine/memory_pool.h"
#include "host/machine/strided_copy.h"
#include "host/plugins/contact/crossing.h"

namespace tenon::host {
namespace {

struct OwnedTensor {
  DLManagedTensorVersioned managed{};
  std::vector<std::int64_t> shape, strides;
  PoolBlock memory;
};

}  // namespace

DLManagedTensorVersioned* make_tensor(DType dtype, std::vector<std::int64_t> shape, std::optional<std::vector<std::int64_t>> strides) {
  auto tensor = std::make_unique<OwnedTensor>();
  tensor->strides = strides ? *std::move(strides) : row_major_strides(shape);
  tensor->shape = std::move(shape);
  tensor->memory = PoolBlock(extent_bytes(tensor->shape, tensor->strides, size_of(dtype)));
  tensor->managed.version = {1, 0};
  tensor->managed.manager_ctx = tensor.get();
  tensor->managed.deleter = [](DLManagedTensorVersioned* self) { delete static_cast<OwnedTensor*>(self->manager_ctx); };
  tensor->managed.dl_tensor = {tensor->memory.data(), {kDLCPU, 0}, static_cast<std::int32_t>(tensor->shape.size()), dlpack_type(dtype),
                               tensor->shape.data(), tensor->strides.data(), 0};
  return &tensor.release()->managed;
}

}  // namespace tenon::host
