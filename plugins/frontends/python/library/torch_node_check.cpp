#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <string>

#include "python/library/torch_library.h"
#include "python/library/torch_node_layout.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

using namespace node_layout;

bool find_functions(std::string& missing) {
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(torch_symbol(name));
    if (!function && missing.empty()) missing = name;
  };
  Functions& f = functions;
  find(f.gradient_edge, "_ZN5torch8autograd4impl13gradient_edgeERKN2at6TensorE");
  find(f.set_gradient_edge, "_ZN5torch8autograd4impl17set_gradient_edgeERKN2at6TensorENS0_4EdgeE");
  find(f.materialize, "_ZN5torch8autograd4impl25materialize_autograd_metaERKN2at10TensorBaseE");
  find(f.make_metadata, "_ZN5torch8autograd13InputMetadataC1ERKN2at6TensorE");
  find(f.next_sequence, "_ZN2at15sequence_number17get_and_incrementEv");
  find(f.thread_id, "_ZN2at14RecordFunction15currentThreadIdEv");
  find(f.destroy, "_ZN5torch8autograd4NodeD2Ev");
  find(f.release_resources, "_ZN5torch8autograd4Node17release_resourcesEv");
  find(f.anomaly_metadata, "_ZN5torch8autograd4Node8metadataEv");
  find(f.assign_parent, "_ZN5torch8autograd4Node13assign_parentEv");
  find(f.should_compute, "_ZNK5torch8autograd4Node26task_should_compute_outputEm");
  find(f.object_of, "_ZN5torch8autograd18functionToPyObjectERKN3c1013intrusive_ptrINS0_4NodeENS1_6detail34intrusive_target_default_null_typeIS3_EEEE");
  find(f.saved_hooks, "_ZN2at23SavedTensorDefaultHooks13get_tls_stateEv");
  find(f.register_type, "_ZN5torch8autograd19registerCppFunctionERKSt9type_infoP11_typeobject");
  find(f.make_type, "_ZN5torch8autograd25_initFunctionPyTypeObjectER11_typeobjectPKcP11PyGetSetDefP11PyMethodDef");
  find(f.twice, "_ZN5torch8autograd18ERR_BACKWARD_TWICEE");
  find(f.node_slots, "_ZTVN5torch8autograd4NodeE");
  find(f.node_type, "_ZTIN5torch8autograd4NodeE");
  find(f.undefined, "_ZN3c1019UndefinedTensorImpl10_singletonE");
  if (!torch_library()->anomaly_on && missing.empty()) missing = "whether anomaly mode is on";
  return missing.empty();
}

const char* const kNodeCheck =
    "def tensors(torch):\n"
    "    with torch.inference_mode(False), torch.enable_grad(), torch.device('cpu'):\n"
    "        leaf = torch.ones(1, dtype=torch.float32, requires_grad=True)\n"
    "        return leaf, leaf * leaf\n"
    "def leaves(torch):\n"
    "    handles = torch.utils.hooks.RemovableHandle\n"
    "    made = handles.next_id\n"
    "    hooked, watched, counted = (torch.ones(1, requires_grad=True) for _ in range(3))\n"
    "    hooked.register_hook(print)\n"
    "    watched.register_post_accumulate_grad_hook(print)\n"
    "    accumulator = torch.autograd.graph.get_gradient_edge(counted).node\n"
    "    accumulator.register_hook(print)\n"
    "    handles.next_id = made\n"
    "    return hooked, watched, counted, accumulator\n"
    "def hooked(torch, ask):\n"
    "    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):\n"
    "        return ask()\n"
    "def trial(torch, add):\n"
    "    with torch.inference_mode(False), torch.enable_grad(), torch.device('cpu'):\n"
    "        x = torch.ones(3, requires_grad=True)\n"
    "        between = x * 2\n"
    "        y, z = torch.zeros(3), torch.zeros(2, 3)\n"
    "        add((between, x), (y, z))\n"
    "        fn = y.grad_fn\n"
    "        right = fn is z.grad_fn and fn.name() == 'SegmentBackward' and [f.name() for f, _ in fn.next_functions] == [between.grad_fn.name(), 'torch::autograd::AccumulateGrad']\n"
    "        right = right and y.requires_grad and not y.is_leaf and (y.output_nr, z.output_nr) == (0, 1)\n"
    "        run = torch.autograd.Variable._execution_engine.run_backward\n"  // torch.autograd.backward imports sympy
    "        run(((y * 5).sum(),), (torch.ones(()),), True, False, (), allow_unreachable=True, accumulate_grad=True)\n"
    "        first = x.grad.tolist()\n"
    "        run((y, z), (torch.ones(3), torch.ones(2, 3)), False, False, (), allow_unreachable=True, accumulate_grad=True)\n"
    "        return right and first == [15.0] * 3 and x.grad.tolist() == [18.0] * 3\n";

/// Hands the gradient of its first result on along each edge.
class Handing final : public NodeBody {
 public:
  const char* name() const override { return "SegmentBackward"; }
  std::vector<TorchRef> apply(const NodeRun& run, std::span<void* const> given) override {
    return std::vector<TorchRef>(run.edge_count(), TorchRef::borrow(given[0]));
  }
  Ref apply_to_others(PyObject*, const std::vector<Ref>&) override { return {}; }
};

PyObject* add_handing_node(PyObject*, PyObject* args) {
  PyObject *inputs = nullptr, *results = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &inputs, &PyTuple_Type, &results)) return nullptr;
  std::vector<TorchEdge> edges;
  std::vector<void*> tensors;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i) edges.push_back(edge_of(layout::impl(PyTuple_GET_ITEM(inputs, i))));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); ++i) tensors.push_back(layout::impl(PyTuple_GET_ITEM(results, i)));
  GradientMetadata known[2];
  add_native_node(std::make_unique<Handing>(), std::move(edges), tensors, known);
  return Py_NewRef(Py_None);
}

PyMethodDef kAddHandingNode = {"add", add_handing_node, METH_VARARGS, nullptr};
PyMethodDef kAskHooks = {"ask", [](PyObject*, PyObject*) -> PyObject* { return PyBool_FromLong(are_hooks_on()); }, METH_NOARGS, nullptr};

bool has_slots(const void* table, std::size_t count) {
  Dl_info info;
  ElfW(Sym)* symbol = nullptr;
  return dladdr1(table, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) && symbol && symbol->st_size == (count + 2) * sizeof(void*);
}

/// The first thing that is not where it is expected, of the fields of two nodes of torch's: of a leaf's accumulator, and of the product of the leaf with itself.
const char* odd_field(PyObject* leaf, PyObject* product) {
  void *leaf_impl = layout::impl(leaf), *product_impl = layout::impl(product);
  void *leaf_meta = layout::autograd_meta(leaf_impl), *meta = layout::autograd_meta(product_impl);
  if (!leaf_meta || !meta) return "autograd_meta";
  const TorchEdge edge = edge_of(leaf_impl);
  if (!edge.node || accumulator_of(leaf_meta) != edge.node.get()) return "grad_accumulator";
  if (field<void*>(edge.node.get(), kNodeBytes) != leaf_impl) return "the size of a node";
  if (field<std::uint64_t>(edge.node.get(), offsetof(Node, sequence)) != kLeafSequence) return "sequence_nr of a leaf";
  auto* node = static_cast<Node*>(node_of(meta));
  if (!node || node->depth != 1 || node->thread != functions.thread_id()) return "topological_nr, thread_id";
  if (node->edges.end - node->edges.first != 2 || node->edges.first[0].node != edge.node.get() || node->edges.first[1].node != edge.node.get()) return "next_edges";
  if (node->metadata != node->metadata_inline || node->metadata_count != 1 || result_number(meta) != 0 || is_view(meta)) return "input_metadata";
  alignas(8) unsigned char made[kMetadataBytes] = {};
  functions.make_metadata(made, &product_impl);
  unsigned char* has = node->metadata_inline;
  if (field<unsigned char*>(made, kSizesInMetadata) != made + kInlineSizes || field<unsigned char*>(has, kSizesInMetadata) != has + kInlineSizes) return "sizes in input_metadata";
  if (field<std::int64_t>(made, kInlineSizes) != 1 || field<std::int64_t>(has, kInlineSizes) != 1) return "sizes in input_metadata";
  return nullptr;
}

const char* odd_table() {
  void** node = functions.node_slots;
  if (!has_slots(node, kSlots) || node[1] != functions.node_type) return "the virtual functions of a node";
  if (node[2 + kReleaseResources] != reinterpret_cast<void*>(functions.release_resources)) return "release_resources";
  auto** other = static_cast<void**>(torch_symbol("_ZTVN5torch8autograd9generated13TanhBackward0E"));  // has functions of its own where ours have
  if (!other || !has_slots(other, kSlots)) return "the virtual functions of TanhBackward0";
  for (std::size_t slot : {kDestroy, kDelete, kName, kReleaseVariables, kApply})
    if (node[2 + slot] == other[2 + slot]) return "the virtual functions that a node overrides";
  return nullptr;
}

std::string why_nodes_are_not_native(const TorchLibrary& torch) {
  if (!torch.direct_fields || !torch.direct_results || !torch.autograd_state) return "the layout of tensors is not known";
  std::string missing;
  if (!find_functions(missing)) return "torch does not export " + missing;
  if (const char* odd = odd_table()) return std::string("another layout: ") + odd;
  Ref scope = defined_by(kNodeCheck);
  const auto call = [&](const char* function, PyObject* argument) {
    return checked(PyObject_CallFunctionObjArgs(PyDict_GetItemString(scope.get(), function), torch.module.get(), argument, nullptr));
  };
  Ref tensors = call("tensors", nullptr);
  if (const char* odd = odd_field(PyTuple_GET_ITEM(tensors.get(), 0), PyTuple_GET_ITEM(tensors.get(), 1))) return std::string("another layout: ") + odd;
  const auto is_hooked = [](PyObject* tensor) { return has_hooks(layout::impl(tensor), edge_of(layout::impl(tensor))); };
  if (is_hooked(PyTuple_GET_ITEM(tensors.get(), 0))) return "another layout: hooks of a tensor";
  Ref leaves = call("leaves", nullptr);
  for (Py_ssize_t i = 0; i < 3; ++i)
    if (!is_hooked(PyTuple_GET_ITEM(leaves.get(), i))) return "another layout: hooks of a tensor";
  const bool before = are_hooks_on();
  if (before || !call("hooked", checked(PyCFunction_New(&kAskHooks, nullptr)).get()).is(Py_True)) return "another layout: hooks of saved tensors";
  make_slots();
  if (!call("trial", checked(PyCFunction_New(&kAddHandingNode, nullptr)).get()).is(Py_True)) return "a node that was tried gave other gradients";
  Ref functions = checked(PyObject_GetAttrString(checked(PyObject_GetAttrString(torch.module.get(), "_C")).get(), "_functions"));
  checked(PyObject_SetAttrString(functions.get(), "SegmentBackward", reinterpret_cast<PyObject*>(&python_type)));  // torch.autograd.graph.Node knows its kinds by these
  return {};
}

std::atomic<const NodeTier*> g_tier = nullptr;
bool g_no_native_nodes = false;

}  // namespace

const NodeTier& node_tier() {
  if (const NodeTier* tier = g_tier.load(std::memory_order_acquire)) return *tier;
  auto made = std::make_unique<NodeTier>();
  try {
    made->reason = g_no_native_nodes ? "switched off" : why_nodes_are_not_native(*torch_library());
  } catch (const PythonError&) {
    PyErr_Clear();
    made->reason = "the self-check raised an exception";
  }
  made->native = made->reason.empty();
  const NodeTier* none = nullptr;  // another thread may have been faster while Python ran
  if (g_tier.compare_exchange_strong(none, made.get())) made.release();
  return *g_tier.load();
}

void use_native_nodes(bool wanted) {
  g_no_native_nodes = !wanted;
  g_tier = nullptr;
}

}  // namespace tenon::python
