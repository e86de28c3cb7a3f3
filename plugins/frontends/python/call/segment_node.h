// The nodes that a compiled segment adds to torch's autograd graph.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "python/call/graph_function.h"

namespace tenon::python {

/// The backwards of a segment, shared by the segment and the nodes of its calls. Each is compiled when it first runs.
class SegmentBackward {
 public:
  SegmentBackward(const CapturedGraph& captured, const Settings& settings);

  const SegmentGradients& gradients() const { return *gradients_; }
  /// The inputs and tensors of the segment, without what was recorded.
  const CapturedGraph& segment() const { return segment_; }
  GraphFunction& function(std::size_t node) { return nodes_[node].function; }

  /// The gradients of a node as a function that has gradients, for those of gradients.
  struct Again {
    GraphFunction function;
    std::shared_ptr<SegmentBackward> backward;
  };
  /// Throws GraphBreak where there is none.
  Again& again(std::size_t node);

 private:
  struct Node {
    GraphFunction function;
    std::unique_ptr<Again> again;
  };

  std::shared_ptr<const SegmentGradients> gradients_;
  CapturedGraph segment_;
  std::vector<Node> nodes_;
};

/// Whether the program has hooks for the tensors that nodes keep (torch.autograd.graph.saved_tensors_hooks): they would see others than torch's own
/// nodes keep. Throws PythonError.
bool are_kept_tensors_hooked();

/// Makes the results of a run that require grad results of nodes of torch's autograd graph. `inputs` by graph input, `tensors` by
/// CapturedGraph::tensors. Throws PythonError.
void add_nodes(const std::shared_ptr<SegmentBackward>& backward, std::span<const Ref> inputs, PyObject* const* tensors, std::span<const std::int64_t> symbols);

}  // namespace tenon::python
