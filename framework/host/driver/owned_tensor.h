// Tensors of the pool that own their memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/abi/dlpack.h"
#include "core/base/dtype.h"

namespace tenon::host {

/// A new tensor with uninitialised memory of the pool. Row-major unless strides are given. Its deleter may run on any thread.
/// Throws (out_of_memory).
DLManagedTensorVersioned* make_tensor(DType dtype, std::vector<std::int64_t> shape, std::optional<std::vector<std::int64_t>> strides = {});

}  // namespace tenon::host
