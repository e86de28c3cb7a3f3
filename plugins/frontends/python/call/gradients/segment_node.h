// The nodes that a compiled segment adds to torch's autograd graph.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "python/call/program/graph_function.h"
#include "python/graph/kept_runs.h"
#include "python/guards/later_check.h"
#include "python/library/float32_rounding.h"
#include "python/library/torch_node.h"

namespace tenon::python {

/// What a run of the engine asks of a node.
struct BackwardRequest {
  std::vector<TangentLayout> tangents;  // by result of the node
  std::vector<bool> asked;              // by wanted value of the segment
  Float32Rounding rounding;             // as torch's flags say it when gradients are asked for
  friend bool operator==(const BackwardRequest&, const BackwardRequest&) = default;
};

/// The backwards of a segment, shared by the segment and the nodes of its calls. Each is compiled when it first runs. Ends with the GIL, wherever it does.
class SegmentBackward {
 public:
  /// `later`: what the program's own gradients read, besides what they are given; null for nothing.
  static std::shared_ptr<SegmentBackward> of(const CapturedGraph& captured, const Settings& settings, const std::string& name, std::shared_ptr<LaterCheck> later = {});

  const SegmentGradients& gradients() const { return *gradients_; }
  const GradientNode& node(std::size_t node) const { return gradients_->nodes[node]; }
  /// The inputs and tensors of the segment, without what was recorded.
  const CapturedGraph& segment() const { return segment_; }
  /// Throws PythonError where gradients would be computed from what was there at the call, and is no more. Needs the GIL.
  void require_as_at_call() const;
  /// Throws PythonError where code of the program's has kept a tensor by itself: torch reads such a one as it is now. Needs the GIL. `text`: torch's words
  /// about one that was written.
  void refuse_written(const std::string& text) const;
  /// What gradients that are asked for now may round.
  Float32Rounding rounding() const { return on_device_ ? float32_rounding() : Float32Rounding(); }
  bool keeps_by_itself() const { return later_ && !later_->keepers().empty(); }
  bool reads_later() const { return later_ && later_->compares(); }
  /// Whether torch's nodes can be ours (library/torch_node.h), and keep what these keep.
  bool is_native() const { return native_; }
  std::span<GradientMetadata> metadata(std::size_t node) { return nodes_[node]->metadata; }

  struct Function {
    BackwardRequest request;
    GraphFunction function;
    std::vector<std::optional<std::uint32_t>> gradients;  // by wanted value: which of its tensors
  };
  /// The graph that a request runs, compiled; null where it was not asked for before. Needs no GIL.
  const Function* known(std::size_t node, const BackwardRequest& request);
  /// The same, made where it is not there. Needs the GIL. `examples`: as GraphFunction::compile has them. Throws PythonError, GraphBreak and Exception.
  const Function& function(std::size_t node, const BackwardRequest& request, std::span<PyObject* const> examples = {});
  /// The request as it is run: of many kinds only what is given counts, and the other gradients are computed and dropped.
  BackwardRequest usual(std::size_t node, BackwardRequest request);

  /// The gradients of a node as a function that has gradients.
  struct Again {
    std::vector<TangentHistory> given;   // by result of the node
    Float32Rounding rounding;
    std::optional<GraphFunction> function;  // none where its gradients depend on nothing that requires grad
    RunsOfGraph runs;
    std::shared_ptr<SegmentBackward> backward;
  };
  Again* known_again(std::size_t node, const std::vector<TangentHistory>& given);
  /// Needs the GIL. `examples`: as GraphFunction::compile has them. Throws PythonError, and GraphBreak where there is none.
  Again& again(std::size_t node, const std::vector<TangentHistory>& given, std::span<PyObject* const> examples = {});

  /// Visits what backends written in Python gave. Only for the one who alone has it.
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Node {
    std::vector<std::unique_ptr<Function>> functions;
    std::vector<std::unique_ptr<Again>> agains;
    std::vector<GradientMetadata> metadata;
  };

  SegmentBackward(const CapturedGraph& captured, const Settings& settings, const std::string& name, std::shared_ptr<LaterCheck> later);

  const std::shared_ptr<const SegmentGradients> gradients_;
  const CapturedGraph segment_;
  const Settings settings_;
  const std::string name_;  // of the graphs that it compiles
  const std::shared_ptr<LaterCheck> later_;
  bool native_ = false;
  const bool on_device_;  // a part of it
  std::mutex mutex_;  // of the lists; nobody waits for the GIL with it
  std::vector<std::unique_ptr<Node>> nodes_;
};

/// What nodes have done since the last reset. Written without the GIL.
struct NodeCounts {
  std::atomic<std::int64_t> nodes, backward_graphs, copied_gradients;
};
NodeCounts& node_counts();

/// The run whose results become those of nodes.
struct NodesOfRun {
  PyObject* const* inputs;   // by graph input
  PyObject* const* tensors;  // by CapturedGraph::tensors; null for views that are still to be made
  std::span<const std::int64_t> symbols;
  std::function<void(std::uint32_t)> make_view;  // of what has its node; sets the tensor. Throws PythonError
  PyObject* const* outer = nullptr;              // by outer value: what has its node
};

/// Makes the results of a run that require grad results of nodes of torch's autograd graph. Throws PythonError.
void add_nodes(const std::shared_ptr<SegmentBackward>& backward, const NodesOfRun& run);

}  // namespace tenon::python
