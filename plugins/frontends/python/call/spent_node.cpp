#include "python/call/spent_node.h"

#include <algorithm>

#include "python/objects/imported.h"
#include "python/objects/sequences.h"

namespace tenon::python {

bool has_spent_results(const CapturedGraph& captured) { return std::ranges::any_of(captured.tensors, &TensorOutput::spent); }

void add_spent_nodes(const CapturedGraph& captured, std::span<PyObject* const> inputs, PyObject* const* tensors) {
  static PyObject* const add = checked(PyObject_GetAttrString(checked(imported("tenon._autograd")).get(), "add_spent_node")).release();
  const auto tracked = std::ranges::find_if(captured.inputs, [](const TensorSpec& spec) { return spec.requires_grad; });
  PyObject* input = inputs[static_cast<std::size_t>(tracked - captured.inputs.begin())];
  for (std::size_t i = 0; i < captured.tensors.size(); ++i)
    if (captured.tensors[i].spent) checked(PyObject_CallFunctionObjArgs(add, tensors[i], input, nullptr));
}

}  // namespace tenon::python
