#include "python/library/torch_node.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "python/compat/object_layout.h"
#include "python/library/torch_layout.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

using layout::field;

// ---- counts: strong ones in the lower half of the word at 8, weak ones in the upper; bit 63 says that a Python object belongs to it

constexpr std::uint64_t kHasPython = 1ull << 63;
constexpr std::uint64_t kUnique = 0x100000001;

std::atomic<std::uint64_t>& counts(void* object) { return field<std::atomic<std::uint64_t>>(object, 8); }
using Method = void (*)(void*);
/// Virtual functions of c10::intrusive_ptr_target, then of torch::autograd::Node.
enum Slot : std::size_t { kDestroy = 0, kDelete = 1, kReleaseResources = 2, kCountPython = 3, kDropPython = 4, kName = 6, kReleaseVariables = 9, kApply = 16 };
constexpr std::size_t kSlots = 17;  // of a node
void call_slot(void* object, std::size_t slot) { field<Method*>(object, 0)[slot](object); }

// ---- torch::autograd::Node

struct Edge {
  void* node;
  std::uint32_t result;
};

/// std::vector<c10::intrusive_ptr<T>>, or of edges.
template <class T>
struct Vector {
  T *first, *end, *capacity;
};

struct Hidden {};
using HooksByResult = std::unordered_map<std::size_t, std::unique_ptr<Hidden>>;

struct Node {
  void** slots;
  std::atomic<std::uint64_t> counts;
  std::uint64_t sequence, depth;
  bool has_parent;
  std::uint64_t thread;
  pthread_mutex_t mutex;
  Vector<Edge> edges;
  void *python, *anomaly;
  Vector<void*> hooks_before, tensor_hooks_before;
  alignas(HooksByResult) unsigned char retained[sizeof(HooksByResult)];
  Vector<void*> hooks_after;
  unsigned char* metadata;  // a small vector of InputMetadata
  std::uint32_t metadata_count, metadata_capacity;
  unsigned char metadata_inline[2 * sizeof(GradientMetadata::bytes)];
  // Ours, behind torch's.
  NodeBody* body;
};
constexpr std::size_t kNodeBytes = 464;
static_assert(offsetof(Node, sequence) == 16 && offsetof(Node, has_parent) == 32 && offsetof(Node, mutex) == 48 && offsetof(Node, edges) == 88);
static_assert(offsetof(Node, python) == 112 && offsetof(Node, retained) == 176 && offsetof(Node, hooks_after) == 232 && offsetof(Node, metadata) == 256);
static_assert(offsetof(Node, metadata_inline) == 272 && offsetof(Node, body) == kNodeBytes);
constexpr std::size_t kMetadataBytes = sizeof(GradientMetadata::bytes);
constexpr std::size_t kSizesInMetadata = 8, kInlineSizes = 24;  // where it keeps its sizes: a pointer, which points into it for up to five of them
constexpr std::uint64_t kLeafSequence = ~0ull;                  // of accumulators

// torch::autograd::AutogradMeta
void*& node_of(void* meta) { return field<void*>(meta, 48); }
void*& accumulator_of(void* meta) { return field<void*>(meta, 56); }  // weak
bool is_leaf_with_gradient(void* meta) { return field<std::uint8_t>(meta, 128) != 0; }
bool is_view(void* meta) { return field<std::uint8_t>(meta, 130) != 0; }
std::uint32_t& result_number(void* meta) { return field<std::uint32_t>(meta, 132); }
bool is_empty(const Vector<void*>& vector) { return vector.first == vector.end; }
bool has_own_hooks(void* meta) { return !is_empty(field<Vector<void*>>(meta, 80)) || field<void*>(meta, 120); }

/// What is used of torch, all by name.
struct Functions {
  void (*gradient_edge)(Edge*, void** tensor);
  void (*set_gradient_edge)(void** tensor, Edge* edge);
  void* (*materialize)(void** tensor);
  void (*make_metadata)(void* memory, void** tensor);
  std::uint64_t (*next_sequence)();
  std::uint64_t (*thread_id)();
  void (*destroy)(void* node);
  Method release_resources;
  void* (*anomaly_metadata)(void* node);
  void (*assign_parent)(void* node);
  bool (*should_compute)(const void* node, std::size_t edge);
  PyObject* (*object_of)(void** node);
  char* (*saved_hooks)();
  void (*register_type)(const std::type_info&, PyTypeObject*);
  PyTypeObject* (*make_type)(PyTypeObject&, const char*, PyGetSetDef*, PyMethodDef*);
  const bool* anomaly_on;
  const char* const* twice;
  void** node_slots;  // vtable of Node
  std::type_info* node_type;
  void* undefined;    // the tensor that is none
};
Functions g_functions;
void* g_slots[2 + kSlots];  // ours: offset to top, type, functions
PyTypeObject g_node_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

bool find_functions(std::string& missing) {
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(torch_symbol(name));
    if (!function && missing.empty()) missing = name;
  };
  Functions& f = g_functions;
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
  find(f.anomaly_on, "_ZN5torch8autograd11AnomalyMode8_enabledE");
  find(f.twice, "_ZN5torch8autograd18ERR_BACKWARD_TWICEE");
  find(f.node_slots, "_ZTVN5torch8autograd4NodeE");
  find(f.node_type, "_ZTIN5torch8autograd4NodeE");
  find(f.undefined, "_ZN3c1019UndefinedTensorImpl10_singletonE");
  return missing.empty();
}

/// Takes the exception that is set, in words.
std::string text_of_raised() {
  Ref raised = compat::take_exception();
  Ref text = Ref::steal(PyObject_Str(raised.get()));
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  const std::string copy = words ? words : "an exception without words";
  PyErr_Clear();
  return copy;
}

// ---- our functions of a node

void let_body_go(Node* node) { delete std::exchange(node->body, nullptr); }

void destroy(Node* node) {
  let_body_go(node);
  g_functions.destroy(node);
}

void delete_node(Node* node) {
  destroy(node);
  std::free(node);
}

void release_resources(Node* node) {
  let_body_go(node);
  g_functions.release_resources(node);
}

std::string* name(std::string* result, Node* node) { return new (result) std::string(node->body ? node->body->name() : "SegmentBackward"); }

struct Lock {
  explicit Lock(pthread_mutex_t& mutex) : mutex(mutex) { pthread_mutex_lock(&mutex); }
  ~Lock() { pthread_mutex_unlock(&mutex); }
  pthread_mutex_t& mutex;
};

void release_variables(Node* node) {
  const Lock lock(node->mutex);
  if (node->body) node->body->release();
}

bool is_plain(void* tensor) {
  const TorchLibrary& torch = *known_torch_library();
  return !tensor || layout::key_set(tensor) == torch.plain_keys || layout::key_set(tensor) == torch.inference_keys;
}

std::vector<TorchRef> apply_to_others(Node* node, std::span<void* const> tensors) {
  const GilHeld gil;
  try {
    void* counted = node;
    Ref object = checked(g_functions.object_of(&counted));
    std::vector<Ref> given;
    for (void* tensor : tensors) {
      void* held = TorchRef::borrow(tensor).release();
      given.push_back(held ? checked(known_torch_library()->wrap(&held)) : Ref::borrow(Py_None));
    }
    Ref gradients = node->body->apply_to_others(object.get(), given);
    std::vector<TorchRef> made;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(gradients.get()); ++i) {
      PyObject* gradient = PyTuple_GET_ITEM(gradients.get(), i);
      made.push_back(gradient == Py_None ? TorchRef() : TorchRef::borrow(layout::impl(gradient)));
    }
    return made;
  } catch (const PythonError&) {
    throw std::runtime_error(text_of_raised());
  }
}

Vector<void*>* apply(Vector<void*>* result, Node* node, Vector<void*>* given) {
  std::vector<void*> tensors(given->first, given->end);
  for (void*& tensor : tensors)
    if (tensor == g_functions.undefined) tensor = nullptr;
  std::vector<TorchRef> made;
  if (std::ranges::all_of(tensors, is_plain)) {
    const Lock lock(node->mutex);
    made = node->body->apply(NodeRun(node), tensors);
  } else {
    made = apply_to_others(node, tensors);
  }
  auto** memory = static_cast<void**>(operator new(made.size() * sizeof(void*)));
  for (std::size_t i = 0; i < made.size(); ++i) memory[i] = made[i] ? made[i].release() : g_functions.undefined;
  *result = {memory, memory + made.size(), memory + made.size()};
  return result;
}

void make_slots() {
  auto* type = new abi::__si_class_type_info("N5tenon6python15SegmentBackwardE", dynamic_cast<abi::__class_type_info*>(g_functions.node_type));
  g_slots[1] = type;
  std::copy_n(g_functions.node_slots + 2, kSlots, g_slots + 2);
  void** slots = g_slots + 2;
  slots[kDestroy] = reinterpret_cast<void*>(destroy);
  slots[kDelete] = reinterpret_cast<void*>(delete_node);
  slots[kReleaseResources] = reinterpret_cast<void*>(release_resources);
  slots[kName] = reinterpret_cast<void*>(name);
  slots[kReleaseVariables] = reinterpret_cast<void*>(release_variables);
  slots[kApply] = reinterpret_cast<void*>(apply);
  g_functions.make_type(g_node_type, "SegmentBackward", nullptr, nullptr);
  g_functions.register_type(*type, &g_node_type);
}

// ---- making one

/// The edge is as its node sees it: one deeper than what it leads to.
void note_depth(Node* node, void* next) {
  field<bool>(next, offsetof(Node, has_parent)) = true;
  const std::uint64_t depth = field<std::uint64_t>(next, offsetof(Node, depth));
  if (node->depth <= depth) node->depth = depth + 1;
}

Node* new_node(std::unique_ptr<NodeBody> body, std::vector<TorchEdge>& edges) {
  auto* node = static_cast<Node*>(std::malloc(sizeof(Node)));
  if (!node) throw std::bad_alloc();
  std::memset(static_cast<void*>(node), 0, sizeof(Node));
  node->slots = g_slots + 2;
  node->counts.store(kUnique, std::memory_order_relaxed);
  new (node->retained) HooksByResult();
  node->metadata = node->metadata_inline;
  node->metadata_capacity = 2;
  node->body = body.release();
  auto* memory = static_cast<Edge*>(operator new(edges.size() * sizeof(Edge)));
  node->edges = {memory, memory + edges.size(), memory + edges.size()};
  for (TorchEdge& edge : edges) {
    if (edge.node) note_depth(node, edge.node.get());
    *memory++ = {edge.node.release(), edge.result};
  }
  thread_local const std::uint64_t thread = g_functions.thread_id();
  node->sequence = g_functions.next_sequence();
  node->thread = thread;
  if (*g_functions.anomaly_on) {
    call_slot(g_functions.anomaly_metadata(node), 2);  // AnomalyMetadata::store_stack
    g_functions.assign_parent(node);
  }
  return node;
}

unsigned char* next_metadata(Node* node) {
  if (node->metadata_count == node->metadata_capacity) {
    const std::uint32_t capacity = node->metadata_capacity * 2;
    auto* memory = static_cast<unsigned char*>(std::malloc(kMetadataBytes * capacity));
    if (!memory) throw std::bad_alloc();
    for (std::uint32_t i = 0; i < node->metadata_count; ++i) {
      unsigned char *from = node->metadata + kMetadataBytes * i, *to = memory + kMetadataBytes * i;
      std::memcpy(to, from, kMetadataBytes);
      if (field<unsigned char*>(to, kSizesInMetadata) == from + kInlineSizes) field<unsigned char*>(to, kSizesInMetadata) = to + kInlineSizes;
    }
    if (node->metadata != node->metadata_inline) std::free(node->metadata);
    node->metadata = memory;
    node->metadata_capacity = capacity;
  }
  return node->metadata + kMetadataBytes * node->metadata_count++;
}

void add_metadata(Node* node, void* tensor, GradientMetadata* known) {
  unsigned char* memory = next_metadata(node);
  if (known && known->known) {
    std::memcpy(memory, known->bytes, kMetadataBytes);
    field<unsigned char*>(memory, kSizesInMetadata) = memory + kInlineSizes;
    return;
  }
  g_functions.make_metadata(memory, &tensor);
  if (!known || field<unsigned char*>(memory, kSizesInMetadata) != memory + kInlineSizes) return;
  std::memcpy(known->bytes, memory, kMetadataBytes);
  known->known = true;
}

// ---- the self-check

const char* const kNodeCheck =
    "def tensors(torch):\n"
    "    with torch.inference_mode(False), torch.enable_grad(), torch.device('cpu'):\n"
    "        leaf = torch.ones(1, dtype=torch.float32, requires_grad=True)\n"
    "        return leaf, leaf * leaf\n"
    "def leaves(torch):\n"
    "    hooked, watched, counted = (torch.ones(1, requires_grad=True) for _ in range(3))\n"
    "    hooked.register_hook(print)\n"
    "    watched.register_post_accumulate_grad_hook(print)\n"
    "    accumulator = torch.autograd.graph.get_gradient_edge(counted).node\n"
    "    accumulator.register_hook(print)\n"
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
    "        (y * 5).sum().backward(retain_graph=True)\n"
    "        first = x.grad.tolist()\n"
    "        torch.autograd.backward([y, z], [torch.ones(3), torch.ones(2, 3)])\n"
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

bool are_hooks_on() {
  const char* state = g_functions.saved_hooks();  // a std::stack, which is a std::deque: empty where its begin is its end
  return field<std::uint64_t>(const_cast<char*>(state), 16) != field<std::uint64_t>(const_cast<char*>(state), 48);
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
  if (!node || node->depth != 1 || node->thread != g_functions.thread_id()) return "topological_nr, thread_id";
  if (node->edges.end - node->edges.first != 2 || node->edges.first[0].node != edge.node.get() || node->edges.first[1].node != edge.node.get()) return "next_edges";
  if (node->metadata != node->metadata_inline || node->metadata_count != 1 || result_number(meta) != 0 || is_view(meta)) return "input_metadata";
  alignas(8) unsigned char made[kMetadataBytes] = {};
  g_functions.make_metadata(made, &product_impl);
  unsigned char* has = node->metadata_inline;
  if (field<unsigned char*>(made, kSizesInMetadata) != made + kInlineSizes || field<unsigned char*>(has, kSizesInMetadata) != has + kInlineSizes) return "sizes in input_metadata";
  if (field<std::int64_t>(made, kInlineSizes) != 1 || field<std::int64_t>(has, kInlineSizes) != 1) return "sizes in input_metadata";
  return nullptr;
}

const char* odd_table() {
  void** node = g_functions.node_slots;
  if (!has_slots(node, kSlots) || node[1] != g_functions.node_type) return "the virtual functions of a node";
  if (node[2 + kReleaseResources] != reinterpret_cast<void*>(g_functions.release_resources)) return "release_resources";
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
  Ref scope = checked(PyDict_New());
  checked(PyDict_SetItemString(scope.get(), "__builtins__", PyEval_GetBuiltins()));
  checked(PyRun_String(kNodeCheck, Py_file_input, scope.get(), scope.get()));
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
  checked(PyObject_SetAttrString(functions.get(), "SegmentBackward", reinterpret_cast<PyObject*>(&g_node_type)));  // torch.autograd.graph.Node knows its kinds by these
  return {};
}

}  // namespace

void TorchRef::count(void* object) noexcept {
  const std::uint64_t now = counts(object).fetch_add(1, std::memory_order_relaxed) + 1;
  if ((now & kHasPython) && static_cast<std::uint32_t>(now) == 2) [[unlikely]] call_slot(object, kCountPython);
}

void TorchRef::let_go(void* object) noexcept {
  std::atomic<std::uint64_t>& word = counts(object);
  if ((word.load(std::memory_order_acquire) & ~kHasPython) == kUnique) {
    word.store(0, std::memory_order_relaxed);
    return call_slot(object, kDelete);
  }
  const std::uint64_t now = word.fetch_sub(1, std::memory_order_acq_rel) - 1;
  const auto weak = [](std::uint64_t w) { return (w & ~kHasPython) >> 32; };
  if (static_cast<std::uint32_t>(now) == 0) {
    if (weak(now) != 1) {
      call_slot(object, kReleaseResources);
      if (weak(word.fetch_sub(1ull << 32, std::memory_order_acq_rel) - (1ull << 32)) != 0) return;
    }
    call_slot(object, kDelete);
  } else if ((now & kHasPython) && static_cast<std::uint32_t>(now) == 1) {
    call_slot(object, kDropPython);
  }
}

TorchRef TorchRef::lock(void* object) noexcept {
  std::atomic<std::uint64_t>& word = counts(object);
  std::uint64_t now = word.load(std::memory_order_relaxed);
  do {
    const auto strong = static_cast<std::uint32_t>(now);
    if (strong == 0 || ((now & kHasPython) && strong == 1)) return {};
  } while (!word.compare_exchange_weak(now, now + 1));
  return steal(object);
}

TorchEdge edge_of(void* tensor) {
  void* meta = layout::autograd_meta(tensor);
  if (!meta) return {};
  if (!is_view(meta)) {  // a view may have been written since, and has its node made anew then
    if (void* node = node_of(meta)) return {TorchRef::borrow(node), result_number(meta)};
    if (!is_leaf_with_gradient(meta)) return {};
    if (void* accumulator = accumulator_of(meta))
      if (TorchRef held = TorchRef::lock(accumulator)) return {std::move(held), 0};
  }
  Edge edge{};
  g_functions.gradient_edge(&edge, &tensor);
  return {TorchRef::steal(edge.node), edge.result};
}

bool has_hooks(void* tensor, const TorchEdge& edge) {
  void* meta = layout::autograd_meta(tensor);
  if (meta && has_own_hooks(meta)) return true;
  const auto* node = static_cast<const Node*>(edge.node.get());
  return node && !(is_empty(node->hooks_before) && is_empty(node->tensor_hooks_before) && is_empty(node->hooks_after));
}

bool NodeRun::asks(std::size_t edge) const { return g_functions.should_compute(node_, edge); }
bool NodeRun::records() const { return (known_torch_library()->autograd_state()[24] & 1) != 0; }
std::size_t NodeRun::edge_count() const { return static_cast<std::size_t>(static_cast<Node*>(node_)->edges.end - static_cast<Node*>(node_)->edges.first); }
TorchEdge NodeRun::edge(std::size_t index) const {
  const Edge& edge = static_cast<Node*>(node_)->edges.first[index];
  return {TorchRef::borrow(edge.node), edge.result};
}
TorchRef native_node(std::unique_ptr<NodeBody> body, std::vector<TorchEdge> edges, std::span<void* const> like) {
  Node* node = new_node(std::move(body), edges);
  TorchRef made = TorchRef::steal(node);
  for (void* tensor : like) add_metadata(node, tensor, nullptr);
  return made;
}

void add_native_node(std::unique_ptr<NodeBody> body, std::vector<TorchEdge> edges, std::span<void* const> results, std::span<GradientMetadata> known) {
  Node* node = new_node(std::move(body), edges);
  TorchRef made = TorchRef::steal(node);
  for (std::size_t i = 0; i < results.size(); ++i) {
    void* tensor = results[i];
    add_metadata(node, tensor, known.empty() ? nullptr : &known[i]);
    if (layout::autograd_meta(tensor)) {  // a view
      Edge edge{TorchRef(made).release(), static_cast<std::uint32_t>(i)};
      g_functions.set_gradient_edge(&tensor, &edge);
      TorchRef::steal(edge.node);
      continue;
    }
    void* meta = g_functions.materialize(&tensor);
    node_of(meta) = TorchRef(made).release();
    result_number(meta) = static_cast<std::uint32_t>(i);
  }
}

bool are_kept_tensors_hooked() {
  if (node_tier().native) {
    thread_local const char* const state = g_functions.saved_hooks();
    return field<std::uint64_t>(const_cast<char*>(state), 16) != field<std::uint64_t>(const_cast<char*>(state), 48);
  }
  static PyObject* const hooks = [] {
    Ref native = checked(PyObject_GetAttrString(torch_library()->module.get(), "_C"));
    Ref autograd = checked(PyObject_GetAttrString(native.get(), "_autograd"));
    return checked(PyObject_GetAttrString(autograd.get(), "_top_saved_tensors_default_hooks")).release();
  }();
  return !checked(PyObject_CallOneArg(hooks, Py_False)).is(Py_None);
}

const char* twice_text() { return *g_functions.twice; }
bool is_anomaly_mode_on() { return *g_functions.anomaly_on; }

namespace {
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
