#include "python/call/gradients/spent_node.h"

#include <algorithm>
#include <vector>

#include "python/objects/imported.h"
#include "python/objects/sequences.h"

namespace tenon::python {

bool has_spent_results(const CapturedGraph& captured) { return std::ranges::any_of(captured.tensors, &TensorOutput::spent); }

void add_spent_nodes(const CapturedGraph& captured, std::span<PyObject* const> inputs, PyObject* const* tensors) {
  static PyObject* const add = checked(PyObject_GetAttrString(checked(imported("tenon._autograd")).get(), "add_spent_node")).release();
  std::vector<PyObject*> arguments = {nullptr};  // first the result
  for (std::size_t i = 0; i < captured.inputs.size(); ++i)
    if (captured.inputs[i].requires_grad) arguments.push_back(inputs[i]);
  for (std::size_t i = 0; i < captured.tensors.size(); ++i) {
    if (!captured.tensors[i].spent) continue;
    arguments.front() = tensors[i];
    checked(PyObject_Vectorcall(add, arguments.data(), arguments.size(), nullptr));
  }
}

}  // namespace tenon::python
