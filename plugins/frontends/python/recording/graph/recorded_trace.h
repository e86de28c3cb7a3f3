// The calls of a capture as the program made them, and where in the user's source.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/foreign/foreign_names.h"
#include "python/graph/captured_graph.h"
#include "python/guards/recorder.h"
#include "python/recording/graph/known_values.h"
#include "python/recording/graph/recorded_graph.h"

namespace tenon::python {

class RecordedTrace {
 public:
  /// `position`: where the program is.
  RecordedTrace(RecordedGraph& graph, KnownValues& known, const Recorder::Position& position)
      : graph_(graph.graph), error_handlings_(graph.error_handlings), known_(known), position_(position) {}

  /// A call of a library of which the nodes begin with `first_node`. What its results are known to be is noted.
  void add(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, const Ref& result, std::size_t first_node);
  /// A constant, as the call that copies it.
  void add_constant(TensorKind kind, PyObject* array, const Ref& stand_in);
  /// A number that the graph computes, as the call of Python that gives it.
  void add_number(const char* module, const char* function, const Ref& args, const Ref& number, bool integral);
  /// A call of tenon.cond.
  void add_choice(TracedCall call, std::size_t first_node);
  void add_output(PyObject* stand_in) { trace_.outputs.push_back(Ref::borrow(stand_in)); }

  /// Where a branch of a control op begins.
  struct Mark {
    std::size_t call = 0, place = 0;
  };
  Mark now() const { return {trace_.calls.size(), places_.size()}; }
  /// Moves what came since into a trace of its own, whose nodes are in the graph as yet.
  std::shared_ptr<BranchTrace> cut(const Mark& since);

  /// By recorded call: "torch.sin".
  const std::vector<std::string>& op_names() const { return op_names_; }
  /// Gives the nodes, and the calls, their places in the source: that may read files.
  void resolve_places() { resolve_places(0); }
  Trace& trace() { return trace_; }
  std::vector<std::string> take_op_names() { return std::move(op_names_); }

 private:
  struct Place {
    Ref code;
    int byte_offset = 0;
    std::size_t first_node = 0, last_node = 0;
    std::size_t call = 0;
  };
  void add(TracedCall call, std::string op_name, std::size_t first_node);
  void resolve_places(std::size_t first);

  ir::Graph& graph_;
  const ErrorHandlings& error_handlings_;
  KnownValues& known_;
  const Recorder::Position& position_;
  Trace trace_;
  std::vector<std::string> op_names_;
  std::vector<Place> places_;
  std::map<std::pair<std::string_view, std::string_view>, Ref> functions_;  // by module and name: those that give numbers
};

/// torch.clone or numpy.copy.
Ref copying_function(TensorKind kind);
/// The package's function that copies strides with gaps and negative steps, too.
Ref function_that_keeps_strides();

}  // namespace tenon::python
