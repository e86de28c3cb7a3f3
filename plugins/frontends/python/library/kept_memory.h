// What a native node keeps of tensors for its backward.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/dtype.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_ref.h"

namespace tenon::python {

/// A tensor that a backward reads, by its memory and what counts the writes to it: the tensor itself may have a history that leads back to the node. A leaf
/// that requires grad has none, and is kept besides, as torch's nodes do: programs give it other `.data`.
struct KeptMemory {
  TorchRef storage;
  TorchRef counts;          // what counts the writes, or the leaf, which has it
  bool is_leaf = false;
  std::int64_t offset = 0;  // in bytes
  std::uint32_t version = 0;

  std::uint32_t version_now() const;
  /// Null where the storage was emptied.
  void* data() const {
    void* start = layout::storage_data(storage.get());
    return start ? static_cast<char*>(start) + offset : nullptr;
  }
  /// The memory that a leaf has now, if that is another.
  void* replacement(DType dtype) const;
};

KeptMemory memory_of(void* tensor, DType dtype);
/// Of an input of a segment.
KeptMemory memory_of_input(void* tensor, DType dtype);

/// torch's name for plain tensors of a dtype.
const char* tensor_type_name(DType dtype);

}  // namespace tenon::python
