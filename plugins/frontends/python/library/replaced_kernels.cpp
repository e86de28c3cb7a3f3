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

/// What was found when the set was last looked through, and how large it was then.
struct Found {
  Py_ssize_t fill = -1, used = -1;
  bool replaced = false;
};
constinit Found g_found;

[[gnu::noinline]] bool look_through(PySetObject* entries) {
  g_found = {entries->fill, entries->used, any_replaces(reinterpret_cast<PyObject*>(entries))};
  return g_found.replaced;
}

}  // namespace

bool kernels_are_replaced(const TorchLibrary& torch) noexcept {
  auto* const entries = reinterpret_cast<PySetObject*>(torch.registered_kernels.get());
  if (!entries) return false;
  if (entries->fill == g_found.fill && entries->used == g_found.used) [[likely]] return g_found.replaced;
  return look_through(entries);
}

}  // namespace tenon::python
