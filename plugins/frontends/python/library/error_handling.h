// How floating-point errors are handled where np.errstate is entered inside of a graph.
#pragma once

#include <utility>
#include <vector>

#include "core/ir/graph.h"
#include "python/library/numpy_state.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// What is said of which kinds of error. Of a kind in neither set, what the calling context says.
struct ErrorHandling {
  FloatErrors ignored, heard;
  bool of_scalars = false;  // an operator on scalars of NumPy, whose integers overflow with a warning where those of arrays wrap around silently

  bool any() const { return ignored.any() || heard.any(); }
  bool operator==(const ErrorHandling&) const = default;
  /// The handling inside of np.errstate with these modes by kind, None where it leaves one as it is; `all` comes first. Throws GraphBreak for
  /// what no graph can do, and for what NumPy refuses.
  ErrorHandling within(PyObject* modes) const;
  /// Keyword arguments of np.errstate that make it so.
  Ref modes() const;
};

/// The handling of each node of a graph, as capture came by.
class ErrorHandlings {
 public:
  /// Nodes that are added to the graph from now on are inside of np.errstate with these modes.
  void enter(const ir::Graph& graph, PyObject* modes);
  void leave(const ir::Graph& graph);
  /// Nodes that are added from now on, until the same is done without `heard`, stand for warnings that NumPy issues whatever np.errstate says.
  void always_hear(const ir::Graph& graph, bool heard);
  /// Nodes that are added meanwhile are an operator on scalars of NumPy.
  class OnScalars {
   public:
    OnScalars(ErrorHandlings& handlings, const ir::Graph& graph);
    ~OnScalars() { handlings_.leave(graph_); }
    OnScalars(const OnScalars&) = delete;
    OnScalars& operator=(const OnScalars&) = delete;

   private:
    ErrorHandlings& handlings_;
    const ir::Graph& graph_;
  };
  const ErrorHandling& now() const;
  const ErrorHandling& of(ir::NodeId node) const;
  /// Whether all nodes are as the calling context has it.
  bool empty() const { return changes_.empty(); }

 private:
  std::vector<std::pair<std::size_t, ErrorHandling>> changes_;  // from this node on
  std::vector<ErrorHandling> outer_;
};

}  // namespace tenon::python
