#include "python/library/float32_rounding.h"

#include <array>

#include "python/library/torch_library.h"
#include "python/objects/ref.h"

namespace tenon::python {
namespace {

// at::Float32Backend, at::Float32Op, at::Float32Precision: torch/include/ATen/Context.h
constexpr int kCuda = 1, kConvolution = 1, kProduct = 3, kTf32 = 2;

/// What of at::Context says it, from torch 2.9 on.
struct Flags {
  const void* context = nullptr;
  int (*precision)(const void* context, int backend, int op) = nullptr;
  bool (*uses_cudnn)(const void* context) = nullptr;
};

Flags find_flags() noexcept {
  Flags found;
  const auto find = [](auto& function, const char* name) { function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(torch_symbol(name)); };
  const void* (*context)() = nullptr;
  find(context, "_ZN2at13globalContextEv");
  find(found.precision, "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE");
  find(found.uses_cudnn, "_ZNK2at7Context16userEnabledCuDNNEv");
  if (context && found.precision && found.uses_cudnn) found.context = context();
  return found;
}

/// An attribute of torch.backends, by its path; empty where there is none, or where torch refuses to say.
Ref flag(PyObject* torch, std::initializer_list<const char*> path) {
  Ref found = Ref::steal(PyObject_GetAttrString(torch, "backends"));
  for (const char* name : path)
    if (found) found = Ref::steal(PyObject_GetAttrString(found.get(), name));
  PyErr_Clear();
  return found;
}

bool says_tf32(const Ref& precision) { return precision && PyUnicode_Check(precision.get()) && PyUnicode_CompareWithASCIIString(precision.get(), "tf32") == 0; }

/// The same through Python, where torch does not export it.
Float32Rounding rounding_through_python(PyObject* torch) {
  const auto allowed = [&](const Ref& precision, std::initializer_list<const char*> older) { return precision ? says_tf32(precision) : flag(torch, older).is(Py_True); };
  const bool products = allowed(flag(torch, {"cuda", "matmul", "fp32_precision"}), {"cuda", "matmul", "allow_tf32"});
  const bool by_cudnn = flag(torch, {"cudnn", "enabled"}).is(Py_True);
  return {products, by_cudnn ? allowed(flag(torch, {"cudnn", "conv", "fp32_precision"}), {"cudnn", "allow_tf32"}) : products};
}

}  // namespace

Float32Rounding float32_rounding() noexcept {
  const TorchLibrary* torch = known_torch_library();
  if (!torch) return {};
  static const Flags flags = find_flags();
  if (!flags.context) {
    const PyGILState_STATE held = PyGILState_Ensure();
    const Float32Rounding found = rounding_through_python(torch->module.get());
    PyGILState_Release(held);
    return found;
  }
  const bool products = flags.precision(flags.context, kCuda, kProduct) == kTf32;
  // Without cuDNN a convolution is a product of matrices.
  return {products, flags.uses_cudnn(flags.context) ? flags.precision(flags.context, kCuda, kConvolution) == kTf32 : products};
}

}  // namespace tenon::python
