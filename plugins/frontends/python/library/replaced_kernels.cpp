#include "python/library/replaced_kernels.h"

#include <algorithm>
#include <string_view>

#include "python/library/torch_library.h"

namespace tenon::python {
namespace {

/// The dispatch keys that a call with ordinary tensors of the CPU passes. torch itself registers others: Meta, and those of other devices.
constexpr std::string_view kKeys[] = {"CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd",
                                      "Autograd", "AutogradCPU", "ADInplaceOrView", "AutocastCPU", "BackendSelect"};

/// An entry is "namespace/operator/key".
bool replaces(PyObject* entry) {
  if (!PyUnicode_Check(entry)) return false;
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(entry, &size);
  if (!text) return PyErr_Clear(), false;
  const std::string_view name(text, static_cast<std::size_t>(size));
  return name.starts_with("aten/") && std::ranges::find(kKeys, name.substr(name.rfind('/') + 1)) != std::end(kKeys);
}

bool any_replaces(PyObject* entries) {
  const Ref iterator = Ref::steal(PyObject_GetIter(entries));
  while (const Ref entry = Ref::steal(iterator ? PyIter_Next(iterator.get()) : nullptr))
    if (replaces(entry.get())) return true;
  PyErr_Clear();
  return false;
}

}  // namespace

bool kernels_are_replaced(const TorchLibrary& torch) noexcept {
  const auto* entries = reinterpret_cast<const PySetObject*>(torch.registered_kernels.get());
  if (!entries) return false;
  static Py_ssize_t filled = -1, used = -1;
  static bool replaced = false;
  if (entries->fill != filled || entries->used != used) [[unlikely]] {
    replaced = any_replaces(torch.registered_kernels.get());
    filled = entries->fill;
    used = entries->used;
  }
  return replaced;
}

}  // namespace tenon::python
