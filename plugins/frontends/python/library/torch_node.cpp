#include "python/library/torch_node.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "python/compat/object_layout.h"
#include "python/library/torch_library.h"
#include "python/library/torch_node_layout.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

using namespace node_layout;

void* g_slots[2 + kSlots];  // of our nodes: offset to top, type, functions

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
  functions.destroy(node);
}

void delete_node(Node* node) {
  destroy(node);
  std::free(node);
}

void release_resources(Node* node) {
  let_body_go(node);
  functions.release_resources(node);
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
    Ref object = checked(functions.object_of(&counted));
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
    if (tensor == functions.undefined) tensor = nullptr;
  std::vector<TorchRef> made;
  if (std::ranges::all_of(tensors, is_plain)) {
    const Lock lock(node->mutex);
    made = node->body->apply(NodeRun(node), tensors);
  } else {
    made = apply_to_others(node, tensors);
  }
  auto** memory = static_cast<void**>(operator new(made.size() * sizeof(void*)));
  for (std::size_t i = 0; i < made.size(); ++i) memory[i] = made[i] ? made[i].release() : functions.undefined;
  *result = {memory, memory + made.size(), memory + made.size()};
  return result;
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
  thread_local const std::uint64_t thread = functions.thread_id();
  node->sequence = functions.next_sequence();
  node->thread = thread;
  if (known_torch_library()->is_anomaly_mode_on()) {
    constexpr std::size_t kStoreStack = 2;
    call_slot(functions.anomaly_metadata(node), kStoreStack);
    functions.assign_parent(node);
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
  functions.make_metadata(memory, &tensor);
  if (!known || field<unsigned char*>(memory, kSizesInMetadata) != memory + kInlineSizes) return;
  std::memcpy(known->bytes, memory, kMetadataBytes);
  known->known = true;
}

}  // namespace

namespace node_layout {

void make_slots() {
  auto* type = new abi::__si_class_type_info("N5tenon6python15SegmentBackwardE", dynamic_cast<abi::__class_type_info*>(functions.node_type));
  g_slots[1] = type;
  std::copy_n(functions.node_slots + 2, kSlots, g_slots + 2);
  void** slots = g_slots + 2;
  slots[kDestroy] = reinterpret_cast<void*>(destroy);
  slots[kDelete] = reinterpret_cast<void*>(delete_node);
  slots[kReleaseResources] = reinterpret_cast<void*>(release_resources);
  slots[kName] = reinterpret_cast<void*>(name);
  slots[kReleaseVariables] = reinterpret_cast<void*>(release_variables);
  slots[kApply] = reinterpret_cast<void*>(apply);
  functions.make_type(python_type, "SegmentBackward", nullptr, nullptr);
  functions.register_type(*type, &python_type);
}


bool are_hooks_on() {
  const char* state = functions.saved_hooks();  // a std::stack, which is a std::deque: empty where its begin is its end
  return field<std::uint64_t>(const_cast<char*>(state), 16) != field<std::uint64_t>(const_cast<char*>(state), 48);
}

}  // namespace node_layout

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
  try {
    functions.gradient_edge(&edge, &tensor);
  } catch (const std::exception& refused) {  // a view that torch lets nobody use, since what it looks at was written
    const std::string_view text = refused.what();
    PyErr_SetString(PyExc_RuntimeError, std::string(text.substr(0, text.find("\nException raised from"))).c_str());
    throw PythonError();
  }
  return {TorchRef::steal(edge.node), edge.result};
}

bool has_hooks(void* tensor, const TorchEdge& edge) {
  void* meta = layout::autograd_meta(tensor);
  if (meta && has_own_hooks(meta)) return true;
  const auto* node = static_cast<const Node*>(edge.node.get());
  return node && node_layout::has_hooks(*node);
}

bool NodeRun::asks(std::size_t edge) const { return functions.should_compute(node_, edge); }
bool NodeRun::records() const { return (known_torch_library()->autograd_state()[24] & 1) != 0; }
std::size_t NodeRun::edge_count() const { return static_cast<std::size_t>(static_cast<Node*>(node_)->edges.end - static_cast<Node*>(node_)->edges.first); }
TorchEdge NodeRun::edge(std::size_t index) const {
  const Edge& edge = static_cast<Node*>(node_)->edges.first[index];
  return {TorchRef::borrow(edge.node), edge.result};
}
TorchRef native_node(std::unique_ptr<NodeBody> body, std::vector<TorchEdge> edges, std::span<void* const> like, std::span<GradientMetadata> known) {
  Node* node = new_node(std::move(body), edges);
  TorchRef made = TorchRef::steal(node);
  for (std::size_t i = 0; i < like.size(); ++i) add_metadata(node, like[i], known.empty() ? nullptr : &known[i]);
  return made;
}

void add_native_node(std::unique_ptr<NodeBody> body, std::vector<TorchEdge> edges, std::span<void* const> results, std::span<GradientMetadata> known) {
  const TorchRef made = native_node(std::move(body), std::move(edges), results, known);
  for (std::size_t i = 0; i < results.size(); ++i) {
    void* tensor = results[i];
    if (layout::autograd_meta(tensor)) {  // a view
      Edge edge{TorchRef(made).release(), static_cast<std::uint32_t>(i)};
      functions.set_gradient_edge(&tensor, &edge);
      TorchRef::steal(edge.node);
      continue;
    }
    void* meta = functions.materialize(&tensor);
    node_of(meta) = TorchRef(made).release();
    result_number(meta) = static_cast<std::uint32_t>(i);
  }
}

bool are_kept_tensors_hooked() {
  if (node_tier().native) {
    thread_local const char* const state = functions.saved_hooks();
    return field<std::uint64_t>(const_cast<char*>(state), 16) != field<std::uint64_t>(const_cast<char*>(state), 48);
  }
  static PyObject* const hooks = [] {
    Ref native = checked(PyObject_GetAttrString(torch_library()->module.get(), "_C"));
    Ref autograd = checked(PyObject_GetAttrString(native.get(), "_autograd"));
    return checked(PyObject_GetAttrString(autograd.get(), "_top_saved_tensors_default_hooks")).release();
  }();
  return !checked(PyObject_CallOneArg(hooks, Py_False)).is(Py_None);
}

const char* twice_text() { return *functions.twice; }

}  // namespace tenon::python
