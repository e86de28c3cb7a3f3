// torch::autograd::Node as torch 2.13 has it, and what is used of torch to make one. torch_node_check.cpp compares both with this torch.
#pragma once

#include <Python.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <typeinfo>
#include <unordered_map>

#include "python/library/torch_layout.h"
#include "python/library/torch_node.h"

namespace tenon::python::node_layout {

using layout::field;

using Method = void (*)(void*);
/// Virtual functions of c10::intrusive_ptr_target, then of torch::autograd::Node.
enum Slot : std::size_t { kDestroy = 0, kDelete = 1, kReleaseResources = 2, kCountPython = 3, kDropPython = 4, kName = 6, kReleaseVariables = 9, kApply = 16 };
constexpr std::size_t kSlots = 17;  // of a node
inline void call_slot(void* object, std::size_t slot) { field<Method*>(object, 0)[slot](object); }
constexpr std::uint64_t kUnique = 0x100000001;  // of the word of counts: one strong, one weak

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
inline void*& node_of(void* meta) { return field<void*>(meta, 48); }
inline void*& accumulator_of(void* meta) { return field<void*>(meta, 56); }  // weak
inline bool is_leaf_with_gradient(void* meta) { return field<std::uint8_t>(meta, 128) != 0; }
inline bool is_view(void* meta) { return field<std::uint8_t>(meta, 130) != 0; }
inline std::uint32_t& result_number(void* meta) { return field<std::uint32_t>(meta, 132); }
inline bool is_empty(const Vector<void*>& vector) { return vector.first == vector.end; }
inline bool has_own_hooks(void* meta) { return !is_empty(field<Vector<void*>>(meta, 80)) || field<void*>(meta, 120); }
inline bool has_hooks(const Node& node) { return !(is_empty(node.hooks_before) && is_empty(node.tensor_hooks_before) && is_empty(node.hooks_after)); }

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
  const char* const* twice;
  void** node_slots;  // vtable of Node
  std::type_info* node_type;
  void* undefined;    // the tensor that is none
};
inline Functions functions;
/// The class of our nodes in Python.
inline PyTypeObject python_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

/// Makes our nodes ready, once all functions are there.
void make_slots();
/// Whether the program has hooks for what nodes keep.
bool are_hooks_on();

}  // namespace tenon::python::node_layout
