// Makes the torch tensors that a compiled call returns.
#pragma once

#include <cstdint>
#include <span>

#include "core/abi/dlpack.h"
#include "core/ir/device.h"
#include "python/library/torch_library.h"
#include "python/library/torch_node.h"
#include "python/metadata/tensor_spec.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Makes an ordinary, resizable CPU tensor in page-warm memory of Tenon's pool; `data` gets its first element. Where torch's layout
/// is not the one known, torch.empty_strided makes it. Null with an exception set when there is no memory.
PyObject* new_torch_tensor(const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes,
                           std::span<const std::int64_t> strides, void*& data);

/// The same without a Python object, which needs no GIL; where results lie in memory of ours alone. Throws std::exception.
TorchRef new_plain_tensor(const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, void*& data);

/// torch.empty_strided, which raises what torch raises. `device`: torch's object.
Ref empty_strided(const TorchLibrary& torch, PyObject* device, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides);

/// Memory that somebody else owns as DLPack says it, for whoever takes it over: that one calls its deleter.
DLManagedTensorVersioned* lent_memory(ir::Device device, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, void* data);

/// A tensor over memory that somebody else owns and that outlives it: no view of it may stay behind.
Ref torch_tensor_over(const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                      void* data);

/// A view of another tensor's storage: sizes, strides and offset (from the storage's start) in elements.
Ref torch_view(const TorchLibrary& torch, PyObject* base, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
               std::int64_t storage_offset);

/// Makes results in memory of ours (TorchLibrary::direct_results) if a tensor made so cannot be told from one of torch's own.
void choose_memory_of_results(TorchLibrary& torch);

/// The tensor or array with the memory of an object of the other library: `x.numpy()`, `torch.from_numpy(a)`.
Ref crossed_over(PyObject* object, TensorKind kind);

/// A tuple of Python ints.
Ref integer_tuple(std::span<const std::int64_t> values);

}  // namespace tenon::python
