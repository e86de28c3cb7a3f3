// What a native node keeps of tensors for its backward.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/dtype.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_ref.h"

namespace tenon::python {

/// A tensor that a backward reads, by its memory and what counts the writes to it: the tensor itself may have a history that leads back to the node.
struct KeptMemory {
  TorchRef storage, counter;
  std::int64_t offset = 0;  // in bytes
  std::uint32_t version = 0;

  std::uint32_t version_now() const { return counter ? layout::field<std::atomic<std::uint32_t>>(counter.get(), 16).load() : 0; }
  void* data() const { return static_cast<char*>(layout::storage_data(storage.get())) + offset; }
};

KeptMemory memory_of(void* tensor, DType dtype);

/// torch's name for plain tensors of a dtype.
const char* tensor_type_name(DType dtype);

}  // namespace tenon::python
