// The fields of a torch tensor, read straight from the object.
//
// torch has no C call for this that takes a Python object, and its Python attributes cost 40 to 70 ns each. The offsets are those of
// torch 2.13, and of versions in which what follows the version counter lies further on; they are private, so `TorchLibrary` compares them
// with Python's answers on a few tensors before anything relies on them.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstdint>

#include "python/guards/pins.h"

namespace tenon::python::layout {

/// By how many bytes fields lie further on than in torch 2.13: of a tensor from the rank on, and of what autograd keeps from behind `grad_fn` on.
struct Shifts {
  std::size_t tensor = 0, autograd = 0;
};
/// Those of versions that are known. torch 2.11 keeps an interpreter beside the Python object, and pointers of two words to nodes.
inline constexpr Shifts kKnownShifts[] = {{0, 0}, {8, 16}, {8, 0}};
/// Those of this process's torch, once they are found. Before: none.
inline Shifts shifts;

template <class T>
T& field(void* object, std::size_t offset) {
  return *reinterpret_cast<T*>(static_cast<char*>(object) + offset);
}

/// The c10::TensorImpl behind a torch.Tensor.
inline void* impl(PyObject* tensor) { return field<void*>(tensor, sizeof(PyObject)); }

inline void* storage(void* impl) { return field<void*>(impl, 16); }
inline std::uint64_t rank(void* impl) { return field<std::uint64_t>(impl, 56 + shifts.tensor); }
/// Up to this rank sizes and strides lie in the object.
inline constexpr std::size_t kInlineRank = 5;
/// Sizes; strides follow five entries later while they fit in the object, else right behind the sizes.
inline const std::int64_t* sizes(void* impl) {
  return rank(impl) <= kInlineRank ? &field<std::int64_t>(impl, 64 + shifts.tensor) : field<const std::int64_t*>(impl, 64 + shifts.tensor);
}
inline const std::int64_t* strides(void* impl) {
  return rank(impl) <= kInlineRank ? &field<std::int64_t>(impl, 104 + shifts.tensor) : field<const std::int64_t*>(impl, 64 + shifts.tensor) + rank(impl);
}
inline std::int64_t storage_offset(void* impl) { return field<std::int64_t>(impl, 144 + shifts.tensor); }
/// dtype (16 bits), device type and index (8 bits each).
inline std::uint32_t dtype_device(void* impl) { return field<std::uint32_t>(impl, 160 + shifts.tensor); }
/// The dispatch key set: conj, neg, meta, inference tensors and `__torch_dispatch__` subclasses all differ here.
inline std::uint64_t key_set(void* impl) { return field<std::uint64_t>(impl, 168 + shifts.tensor); }
/// Whether sizes or strides are answered by a subclass instead of the fields.
inline bool custom_sizes(void* impl) { return (field<std::uint8_t>(impl, 166 + shifts.tensor) & 0x0c) != 0; }

/// torch::autograd::AutogradMeta, or null. Views and leaf scalars have one without requiring grad.
inline void* autograd_meta(void* impl) { return field<void*>(impl, 24); }
inline bool requires_grad(void* impl) {
  void* meta = autograd_meta(impl);
  return meta && (field<std::uint8_t>(meta, 128 + shifts.autograd) != 0 || field<void*>(meta, 48) != nullptr);
}
/// Whether the tensor carries a forward-mode tangent.
inline bool has_tangent(void* impl) {
  void* meta = autograd_meta(impl);
  return meta && field<void*>(meta, 64 + shifts.autograd) != nullptr;
}

/// Pins the metadata of a tensor of at most kInlineRank dimensions: its class and implementation, rank, sizes, strides, dtype and key set,
/// and what says whether it requires gradients. False where another tensor says that: a view that was made without gradients.
inline bool pin(PyObject* tensor, Pins& pins) {
  static_assert(168 + sizeof(std::uint64_t) - 48 == Pins::kBlockPairs * 2 * sizeof(std::uint64_t));
  void* tensor_impl = impl(tensor);
  void* meta = autograd_meta(tensor_impl);
  if (meta && !requires_grad(tensor_impl)) return false;
  pins.word(&tensor->ob_type, Py_TYPE(tensor));
  pins.word(&field<void*>(tensor, sizeof(PyObject)), tensor_impl);
  pins.word(&field<void*>(tensor_impl, 24), meta);
  if (meta) {
    pins.word(&field<char>(meta, 128 + shifts.autograd), field<std::uint64_t>(meta, 128 + shifts.autograd));
    if (field<std::uint8_t>(meta, 128 + shifts.autograd) == 0) pins.word(&field<char>(meta, 48), field<std::uint64_t>(meta, 48));
    pins.word(&field<char>(meta, 64 + shifts.autograd), field<std::uint64_t>(meta, 64 + shifts.autograd));
  }
  if (rank(tensor_impl) > 2) {
    pins.block(&field<char>(tensor_impl, 48 + shifts.tensor));
    return true;
  }
  pins.pair(&field<char>(tensor_impl, 56 + shifts.tensor));   // rank and the first size
  if (rank(tensor_impl) == 2) pins.pair(&field<char>(tensor_impl, 72 + shifts.tensor));
  pins.pair(&field<char>(tensor_impl, 104 + shifts.tensor));  // strides
  pins.pair(&field<char>(tensor_impl, 160 + shifts.tensor));  // dtype and device, key set
  return true;
}

/// `_version` of a tensor and its views, or null: inference tensors have none.
inline std::atomic<std::uint32_t>* version(void* impl) {
  void* counter = field<void*>(impl, 40);
  return counter ? &field<std::atomic<std::uint32_t>>(counter, 16) : nullptr;
}

/// Pins the memory of a tensor, whatever else of it is pinned, and its version: nobody writes it in a way that torch counts.
inline bool pin_contents(PyObject* tensor, Pins& pins) {
  void* tensor_impl = impl(tensor);
  void *memory = storage(tensor_impl), *counter = field<void*>(tensor_impl, 40);
  if (!counter) return false;
  pins.word(&field<void*>(tensor, sizeof(PyObject)), tensor_impl);
  pins.word(&field<char>(tensor_impl, 144 + shifts.tensor), field<std::uint64_t>(tensor_impl, 144 + shifts.tensor));  // the offset
  pins.word(&field<void*>(tensor_impl, 16), memory);
  pins.word(&field<void*>(memory, 16), field<void*>(memory, 16));
  pins.word(&field<void*>(tensor_impl, 40), counter);
  pins.word(&field<char>(counter, 16), field<std::uint64_t>(counter, 16));
  return true;
}

inline void* storage_data(void* storage) { return field<void*>(storage, 16); }
/// The function that lets the memory go: memory that is copied when it is written has one of its own.
inline const void* storage_deleter(void* storage) { return field<const void*>(storage, 24); }
inline void* data(void* impl, std::size_t item_bytes) {
  return static_cast<char*>(storage_data(storage(impl))) + storage_offset(impl) * static_cast<std::int64_t>(item_bytes);
}

}  // namespace tenon::python::layout
