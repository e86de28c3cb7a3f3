// Makes the torch tensors that a compiled call returns.
#pragma once

#include <cstdint>
#include <span>

#include "python/library/torch_library.h"
#include "python/metadata/tensor_spec.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Switches inference mode on or off for this thread while it lives, where it is to be another than the thread is in.
class InferenceScope {
 public:
  /// Raises nothing; `failed()` with an exception set.
  InferenceScope(bool wanted, bool present);
  ~InferenceScope();
  InferenceScope(const InferenceScope&) = delete;
  InferenceScope& operator=(const InferenceScope&) = delete;
  bool failed() const { return failed_; }

 private:
  Ref context_;
  bool failed_ = false;
};

/// Switches grad mode off for as long as it lives, where that is needed.
class WithoutGrad {
 public:
  explicit WithoutGrad(bool needed);
  ~WithoutGrad();
  WithoutGrad(const WithoutGrad&) = delete;
  WithoutGrad& operator=(const WithoutGrad&) = delete;

 private:
  bool needed_;
};

/// Makes an ordinary, resizable CPU tensor in page-warm memory of Tenon's pool; `data` gets its first element. Where torch's layout
/// is not the one known, torch.empty_strided makes it. Null with an exception set when there is no memory.
PyObject* new_torch_tensor(const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes,
                           std::span<const std::int64_t> strides, void*& data);

/// A tensor over memory that somebody else owns and that outlives it: no view of it may stay behind.
Ref torch_tensor_over(const TorchLibrary& torch, DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                      void* data);

/// A view of another tensor's storage: sizes, strides and offset (from the storage's start) in elements.
Ref torch_view(const TorchLibrary& torch, PyObject* base, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
               std::int64_t storage_offset);

/// Checks that a tensor made in pool memory cannot be told from one of torch's own.
bool results_are_ordinary(const TorchLibrary& torch);

/// The tensor or array with the memory of an object of the other library: `x.numpy()`, `torch.from_numpy(a)`.
Ref crossed_over(PyObject* object, TensorKind kind);

/// A tuple of Python ints.
Ref integer_tuple(std::span<const std::int64_t> values);

}  // namespace tenon::python
