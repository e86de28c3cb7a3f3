#include "python/metadata/leaf_check.h"

#include "python/library/torch_library.h"
#include "python/library/torch_node_layout.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

bool is_free(PyObject* tensor) { return node_layout::is_free_leaf(layout::autograd_meta(layout::impl(tensor))); }

/// Whether torch keeps hooks where torch_node_layout.h says, asked of tensors that have each kind.
bool find_fields() {
  constexpr const char* kProgram =
      "def tensors(torch):\n"
      "    def hooked(hook):\n"
      "        p = torch.nn.Parameter(torch.zeros(2))\n"
      "        node = p.view_as(p).grad_fn.next_functions[0][0]\n"
      "        return p, node, hook(p, node)\n"
      "    with torch.inference_mode(False), torch.enable_grad(), torch.device('cpu'):\n"
      "        plain = [(torch.nn.Parameter(torch.zeros(2)),), hooked(lambda p, node: None)]\n"
      "        hooks = [lambda p, node: p.register_hook(lambda g: g), lambda p, node: p.register_post_accumulate_grad_hook(lambda p: None),\n"
      "                 lambda p, node: node.register_hook(lambda *a: None), lambda p, node: node.register_prehook(lambda *a: None)]\n"
      "        return plain, [hooked(hook) for hook in hooks] + [(plain[0][0] * 2,)]\n";
  Ref scope = defined_by(kProgram);
  Ref groups = checked(PyObject_CallOneArg(PyDict_GetItemString(scope.get(), "tensors"), known_torch_library()->module.get()));
  for (const bool free : {true, false}) {
    PyObject* group = PyTuple_GET_ITEM(groups.get(), free ? 0 : 1);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(group); ++i)
      if (is_free(PyTuple_GET_ITEM(PyList_GET_ITEM(group, i), 0)) != free) return false;
  }
  return true;
}

}  // namespace

bool LeafCheck::is_possible() {
  static const bool known = known_torch_library()->direct_fields && find_fields();
  return known;
}

bool LeafCheck::holds(PyObject* tensor) const noexcept { return is_free(tensor); }

bool LeafCheck::pin(PyObject* tensor, Pins& pins) const { return node_layout::pin_free_leaf(layout::autograd_meta(layout::impl(tensor)), pins); }

std::string LeafCheck::found(PyObject* tensor) const { return holds(tensor) ? "a leaf without hooks" : "a tensor with hooks, or that was computed"; }

}  // namespace tenon::python
