// Tensors of devices whose memory the host cannot reach, as a compiled call makes them.
#pragma once

#include <cstdint>
#include <span>

#include "core/ir/device.h"
#include "python/library/torch_library.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Makes an ordinary tensor in memory of torch's own; `data` gets the address of its first element. Null with torch's exception set.
PyObject* new_device_tensor(ir::Device device, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, void*& data);

/// A tensor over memory of the device that somebody else owns and that outlives it.
Ref device_tensor_over(ir::Device device, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, void* data);

}  // namespace tenon::python
