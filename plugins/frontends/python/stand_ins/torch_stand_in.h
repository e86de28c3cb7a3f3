// Stand-ins for torch tensors: genuine tensors without storage, whose every use comes back to the recorder.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "core/ir/device.h"
#include "python/library/torch_library.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Makes the class (TorchLibrary::stand_in): a subclass of torch.Tensor whose `__torch_function__` records, and whose `__torch_dispatch__`
/// refuses what slipped past it.
void make_torch_stand_in_class(TorchLibrary& torch);

/// Makes a stand-in (torch.Tensor._make_wrapper_subclass).
Ref make_torch_stand_in(const TorchLibrary& torch, ir::Device device, DType dtype, std::span<const std::int64_t> shape,
                        std::span<const std::int64_t> strides, bool requires_grad);

/// Whether an object is one.
bool is_torch_stand_in(PyObject* object);

}  // namespace tenon::python
