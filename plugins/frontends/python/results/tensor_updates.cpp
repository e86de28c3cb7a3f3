#include "python/results/tensor_updates.h"

#include "python/library/numpy_api.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

/// torch.autograd.graph.increment_version, for a torch whose fields are not known.
bool count_through_python(const TorchLibrary& torch, PyObject* target, std::uint32_t writes) {
  try {
    Ref autograd = checked(PyObject_GetAttrString(torch.module.get(), "autograd"));
    Ref graph = checked(PyObject_GetAttrString(autograd.get(), "graph"));
    for (std::uint32_t i = 0; i < writes; ++i) checked(PyObject_CallMethod(graph.get(), "increment_version", "O", target));
    return true;
  } catch (const PythonError&) {
    return false;
  }
}

}  // namespace

bool write_elements(const TensorSpec& target_spec, PyObject* target, PyObject* value) {
  if (target_spec.kind == TensorKind::array) {
    if (!PyArray_Check(value)) {
      PyErr_Format(PyExc_TypeError, "the new value of an array must be an array, not %s", Py_TYPE(value)->tp_name);
      return false;
    }
    return PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(target), reinterpret_cast<PyArrayObject*>(value)) == 0;
  }
  // Through `.data`: a copy that autograd neither sees nor counts.
  Ref data = Ref::steal(PyObject_GetAttrString(target, "data"));
  Ref done = data ? Ref::steal(PyObject_CallMethod(data.get(), "copy_", "O", value)) : Ref();
  return static_cast<bool>(done);
}

bool count_writes(const TensorSpec& spec, PyObject* target, std::uint32_t writes) {
  if (spec.kind != TensorKind::torch || writes == 0 || spec.is_inference()) return true;
  if (!spec.key_set) return count_through_python(*known_torch_library(), target, writes);
  if (auto* version = layout::version(layout::impl(target))) version->fetch_add(writes);
  return true;
}

std::uint32_t version_of(const TensorSpec& spec, PyObject* tensor) {
  if (spec.is_inference()) return 0;
  if (spec.key_set) {
    const auto* version = layout::version(layout::impl(tensor));
    return version ? version->load() : 0;
  }
  return static_cast<std::uint32_t>(PyLong_AsUnsignedLong(checked(PyObject_GetAttrString(tensor, "_version")).get()));
}

}  // namespace tenon::python
