#include "python/metadata/leaf_check.h"

#include <atomic>

#include "python/library/torch_layout.h"
#include "python/library/torch_library.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

using layout::field;

/// Where torch keeps what says whether a tensor is a leaf, and its hooks: in its AutogradMeta, and in the node that accumulates.
struct LeafLayout {
  std::size_t node, accumulator, hooks, hook_after;                   // of the metadata; the accumulator is held weakly
  std::size_t count_of, count;                                        // behind which of its pointers the accumulator is counted, and where
  std::size_t node_hooks_before, node_tensor_hooks, node_hooks_after;  // of the node
};
/// Of torch 2.13, whose nodes count themselves, and of 2.11, whose nodes are counted beside them.
constexpr LeafLayout kKnownLayouts[] = {{48, 56, 80, 120, 56, 8, 128, 152, 232}, {48, 64, 96, 136, 72, 8, 136, 160, 240}};
LeafLayout g_layout = kKnownLayouts[0];

bool is_empty_vector(void* object, std::size_t place) { return field<void*>(object, place) == field<void*>(object, place + sizeof(void*)); }

bool is_accumulator_alive(void* meta) {
  void* counted = field<void*>(meta, g_layout.count_of);
  return counted && static_cast<std::uint32_t>(field<std::atomic<std::uint64_t>>(counted, g_layout.count).load(std::memory_order_relaxed)) != 0;
}

bool has_hooks(void* accumulator) {
  return !(is_empty_vector(accumulator, g_layout.node_hooks_before) && is_empty_vector(accumulator, g_layout.node_tensor_hooks) && is_empty_vector(accumulator, g_layout.node_hooks_after));
}

/// Whether no hook is run when its gradient comes: none on the tensor, before or after, and none on the node that accumulates, which it may have.
bool is_free(void* meta) {
  if (!meta) return true;
  if (field<void*>(meta, g_layout.node) || !is_empty_vector(meta, g_layout.hooks) || field<void*>(meta, g_layout.hook_after)) return false;
  return !is_accumulator_alive(meta) || !has_hooks(field<void*>(meta, g_layout.accumulator));
}

/// Whether Python shows hooks by that name. Each kind of them is one object in C++.
bool shows_hooks(PyObject* tensor, const char* name) noexcept {
  Ref hooks = Ref::steal(PyObject_GetAttrString(tensor, name));
  PyErr_Clear();
  return hooks && !hooks.is(Py_None);
}

void* meta_of(PyObject* tensor) { return layout::autograd_meta(layout::impl(tensor)); }

/// Whether torch keeps hooks where the layout that is set says, asked of tensors that have each kind.
bool layout_agrees() {
  constexpr const char* kProgram =
      "def tensors(torch):\n"
      "    def hooked(hook):\n"
      "        p = torch.nn.Parameter(torch.zeros(2))\n"
      "        node = p.view_as(p).grad_fn.next_functions[0][0]\n"
      "        return p, node, hook(p, node)\n"
      "    handles = torch.utils.hooks.RemovableHandle\n"
      "    made = handles.next_id\n"
      "    with torch.inference_mode(False), torch.enable_grad(), torch.device('cpu'):\n"
      "        plain = [(torch.nn.Parameter(torch.zeros(2)),), hooked(lambda p, node: None)]\n"
      "        hooks = [lambda p, node: p.register_hook(lambda g: g), lambda p, node: p.register_post_accumulate_grad_hook(lambda p: None),\n"
      "                 lambda p, node: node.register_hook(lambda *a: None), lambda p, node: node.register_prehook(lambda *a: None)]\n"
      "        given = plain, [hooked(hook) for hook in hooks] + [(plain[0][0] * 2,)]\n"
      "    handles.next_id = made\n"
      "    return given\n";
  Ref scope = defined_by(kProgram);
  Ref groups = checked(PyObject_CallOneArg(PyDict_GetItemString(scope.get(), "tensors"), known_torch_library()->module.get()));
  for (const bool free : {true, false}) {
    PyObject* group = PyTuple_GET_ITEM(groups.get(), free ? 0 : 1);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(group); ++i)
      if (is_free(meta_of(PyTuple_GET_ITEM(PyList_GET_ITEM(group, i), 0))) != free) return false;
  }
  return true;
}

bool find_layout() {
  for (const LeafLayout& known : kKnownLayouts) {
    g_layout = known;
    if (layout_agrees()) return true;
  }
  return false;
}

}  // namespace

bool LeafCheck::is_possible() {
  static const bool known = known_torch_library()->direct_fields && find_layout();
  return known;
}

bool LeafCheck::holds(PyObject* tensor) const noexcept { return is_free(meta_of(tensor)); }

/// While the tensor has had no node that accumulates.
bool LeafCheck::pin(PyObject* tensor, Pins& pins) const {
  void* meta = meta_of(tensor);
  if (!meta || !is_free(meta) || field<void*>(meta, g_layout.accumulator)) return false;
  for (const std::size_t place : {g_layout.node, g_layout.accumulator, g_layout.hooks, g_layout.hooks + sizeof(void*), g_layout.hook_after})
    pins.word(&field<char>(meta, place), field<std::uint64_t>(meta, place));
  return true;
}

std::string LeafCheck::found(PyObject* tensor) const { return holds(tensor) ? "a leaf without hooks" : "a tensor with hooks, or that was computed"; }

bool HookedLeafCheck::holds(PyObject* tensor) const noexcept {
  void* meta = meta_of(tensor);
  if (!meta || field<void*>(meta, g_layout.node)) return false;
  const auto before = (field<char*>(meta, g_layout.hooks + sizeof(void*)) - field<char*>(meta, g_layout.hooks)) / static_cast<std::ptrdiff_t>(sizeof(void*));
  if (before != (shows_hooks(tensor, "_backward_hooks") ? 1 : 0)) return false;
  if ((field<void*>(meta, g_layout.hook_after) != nullptr) != shows_hooks(tensor, "_post_accumulate_grad_hooks")) return false;
  return !is_accumulator_alive(meta) || !has_hooks(field<void*>(meta, g_layout.accumulator));
}

}  // namespace tenon::python
