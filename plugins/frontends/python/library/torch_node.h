// Nodes of torch's autograd graph whose backward is ours. torch has no C call that makes one: ours have the layout of torch::autograd::Node, which is
// private, so a self-check compares it with nodes of torch's own before anything relies on it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "python/library/torch_library.h"
#include "python/library/torch_ref.h"

namespace tenon::python {

/// Where a gradient goes: a result of a node.
struct TorchEdge {
  TorchRef node;  // empty: nobody asks for it
  std::uint32_t result = 0;
};

/// Of a tensor (its c10::TensorImpl): its node's, or that of its accumulator where it is a leaf.
TorchEdge edge_of(void* tensor);

/// Whether somebody looks when a tensor with that edge gets its gradient.
bool has_hooks(void* tensor, const TorchEdge& edge);

/// One of our nodes in a run of the engine.
class NodeRun {
 public:
  explicit NodeRun(void* node) : node_(node) {}
  /// Whether the engine goes on along that edge.
  bool asks(std::size_t edge) const;
  /// Whether the gradients are to have gradients.
  bool records() const;
  std::size_t edge_count() const;
  TorchEdge edge(std::size_t index) const;
  /// That of its only result.
  TorchEdge own_edge() const { return {TorchRef::borrow(node_), 0}; }

 private:
  void* node_;
};

/// What a node of ours does. All of it runs on any thread, without the GIL.
class NodeBody {
 public:
  virtual ~NodeBody() = default;
  virtual const char* name() const = 0;
  /// Gives a gradient for each edge, empty where there is none. `given`: by result of the node; null where it has no gradient. What it throws becomes
  /// a RuntimeError of the program.
  virtual std::vector<TorchRef> apply(const NodeRun& run, std::span<void* const> given) = 0;
  /// The same of gradients of which some are no plain tensors: batches of them, under torch's vmap. Called with the GIL, with the node as an object of
  /// Python. Throws PythonError.
  virtual Ref apply_to_others(PyObject* node, const std::vector<Ref>& given) = 0;
  /// Forgets what is kept for `apply`: it will not be called again, but for a program's mistake.
  virtual void release() noexcept {}
};

/// torch::autograd::InputMetadata of a tensor, to be copied for others of the same type and shape.
struct GradientMetadata {
  alignas(8) unsigned char bytes[96];
  bool known = false;
};

/// Makes tensors the results of a node. `known`: by result, or empty; filled by the first.
void add_native_node(std::unique_ptr<NodeBody> body, std::vector<TorchEdge> edges, std::span<void* const> results, std::span<GradientMetadata> known = {});
/// The same without results: `like` have the types and shapes of the gradients that it takes.
TorchRef native_node(std::unique_ptr<NodeBody> body, std::vector<TorchEdge> edges, std::span<void* const> like, std::span<GradientMetadata> known = {});

/// Whether the program has hooks for what nodes keep. Throws PythonError.
bool are_kept_tensors_hooked();
/// What torch says of a second backward.
const char* twice_text();

/// Whether this torch's nodes have the layout that is known, and why not. Looked at once. The GIL must be held; not before torch has been found.
struct NodeTier {
  bool native = false;
  std::string reason;  // why not
};
const NodeTier& node_tier();
/// For tests: whether nodes of segments that are compiled from now on may be ours.
void use_native_nodes(bool wanted);

}  // namespace tenon::python
