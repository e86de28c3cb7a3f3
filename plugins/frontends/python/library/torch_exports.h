// What torch exports to C for tensors of any device: its shims for ahead-of-time code, and the exchange table of DLPack.
#pragma once

#include <Python.h>

#include <cstdint>

#include "core/abi/dlpack.h"
#include "core/base/dtype.h"

namespace tenon::python {

/// Functions give 0 where they succeed. Without the first all are null.
struct TorchExports {
  using Tensor = void*;  // an at::Tensor on the heap
  using Stream = void*;  // a c10::Stream on the heap

  std::int32_t (*empty_strided)(std::int64_t rank, const std::int64_t* sizes, const std::int64_t* strides, std::int32_t dtype, std::int32_t device_type,
                                std::int32_t device_index, Tensor* made) = nullptr;
  std::int32_t (*delete_tensor)(Tensor tensor) = nullptr;
  std::int32_t (*data)(Tensor tensor, void** data) = nullptr;

  // https://dmlc.github.io/dlpack/latest/c_api.html#c.DLPackExchangeAPI
  int (*describe)(void* object, DLTensor* described) = nullptr;
  int (*take_over)(DLManagedTensorVersioned* tensor, void** object) = nullptr;
  int (*current_stream)(DLDeviceType kind, std::int32_t index, void** stream) = nullptr;

  /// Of the current thread; null is the default stream. Null where this torch has no CUDA.
  std::int32_t (*cuda_stream)(std::int32_t index, void** stream) = nullptr;
  // Of the process's accelerator. The number 0 is the default stream; each may be null.
  std::int32_t (*numbered_stream)(std::int32_t index, Stream* stream) = nullptr;
  std::int32_t (*number_of_stream)(Stream stream, std::int64_t* number) = nullptr;
  std::int32_t (*handle_of_stream)(Stream stream, void** handle) = nullptr;
  std::int32_t (*delete_stream)(Stream stream) = nullptr;

  std::int32_t scalar_types[kDTypeCount] = {};  // c10::ScalarType by DType

  bool are_there() const { return empty_strided != nullptr; }
};

/// Looked up once, when torch has been found.
const TorchExports& torch_exports();

}  // namespace tenon::python
