// Tensors that own their memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/abi/dlpack.h"
#include "core/base/dtype.h"
#include "host/devices/device.h"

namespace tenon::host {

struct TensorDeleter {
  void operator()(DLManagedTensorVersioned* tensor) const { tensor->deleter(tensor); }
};
using TensorPointer = std::unique_ptr<DLManagedTensorVersioned, TensorDeleter>;

/// A new tensor with uninitialised memory of a device, for work of its current stream. Row-major unless strides are given. Its deleter may run
/// on any thread. `owner` keeps the device alive, which the host does not need. Throws (out_of_memory).
TensorPointer make_tensor(Device& device, std::shared_ptr<void> owner, DType dtype, std::vector<std::int64_t> shape,
                          std::optional<std::vector<std::int64_t>> strides = {});

}  // namespace tenon::host
