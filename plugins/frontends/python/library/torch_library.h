// torch as this process has it: its objects, its exported functions, and whether its private layout is the one we know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/dtype.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Everything that the frontend uses of torch. Found once, when torch has been imported; nothing links libtorch.
struct TorchLibrary {
  Ref module;
  Ref tensor, parameter, tensor_base, dtype, device, size, layout, memory_format, generator;  // types
  Ref empty_strided, as_strided, disable_subclass;         // callables
  Ref cpu, meta, strided;                                  // torch.device("cpu"), torch.device("meta"), torch.strided
  Ref preserve_format;                                     // torch.preserve_format
  Ref dtypes[kDTypeCount];                                 // torch.float32 and the like, by DType
  std::uint8_t scalar_types[kDTypeCount] = {};             // c10::ScalarType by DType
  Ref stand_in;                                            // the class of stand-ins: torch_stand_in.cpp
  Ref wrapper_subclass;                                    // torch.Tensor._make_wrapper_subclass
  Ref registered_kernels;                                  // the set of what torch.library has registered; null where torch keeps none

  /// The self-check found the fields where torch_layout.h says.
  bool direct_fields = false;
  /// Results may be made in memory of ours (torch_results.cpp); else by torch.empty_strided.
  bool direct_results = false;
  /// Why one of them is off, for `tenon.stats()` and the log.
  std::string fallback_reason;

  std::uint64_t plain_keys = 0;      // the key set of an ordinary CPU tensor
  std::uint64_t inference_keys = 0;  // of one made under inference_mode
  const void* lazy_deleter = nullptr;  // of memory that is copied when it is first written (torch._lazy_clone)

  // Functions that torch exports without a header that is stable; each may be null.
  struct Shape {
    const std::int64_t* data;
    std::size_t size;
  };
  void* (*empty_generic)(void* result, Shape sizes, Shape strides, void* allocator, std::uint64_t key_set, std::int8_t dtype) = nullptr;
  PyObject* (*wrap)(void* tensor) = nullptr;
  char* (*autograd_state)() = nullptr;
  char* (*function_mode_state)() = nullptr;
  void* (*dispatch_keys_of_thread)() = nullptr;
  std::int8_t (*default_dtype)() = nullptr;
  std::int8_t (*autocast_dtype)(std::int8_t device) = nullptr;       // of the calling thread; device 0 is the CPU, 1 CUDA
  void (*set_autocast)(std::int8_t device, bool enabled) = nullptr;  // likewise
  const void* context = nullptr;                                     // at::globalContext()
  bool (*deterministic)(const void* context) = nullptr;              // whether the program asks for deterministic algorithms
  const bool* anomaly_on = nullptr;                                  // whether the engine looks for anomalies

  bool is_anomaly_mode_on() const { return anomaly_on && *anomaly_on; }
  bool is_tensor(PyObject* object) const { return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(tensor.get())); }
  std::optional<DType> dtype_of(PyObject* torch_dtype) const;
  std::optional<DType> dtype_of_scalar_type(std::uint8_t number) const;
};

/// A symbol of the libraries that torch has loaded; null when there is none.
void* torch_symbol(const char* name) noexcept;

/// What else is made or checked of torch once it is found, by those who make results and stand-ins. Called at import, in their order.
void when_torch_is_found(void (*then)(TorchLibrary&));

/// The library once the program has imported torch, else null. Cheap to ask again. The GIL must be held.
const TorchLibrary* torch_library();

/// The same, without looking whether torch has been imported meanwhile.
const TorchLibrary* known_torch_library() noexcept;

}  // namespace tenon::python
