// What leaves a recording: outputs, views among them, updates of inputs; at the end the captured graph.
#pragma once

#include <unordered_map>
#include <vector>

#include "python/graph/captured_graph.h"
#include "python/recording/graph/assumptions.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/recording/recorded_gradients.h"
#include "python/recording/memory/late_views.h"
#include "python/recording/opaque/opaque_calls.h"

namespace tenon::python {

class RecordedOutputs {
 public:
  using Index = StandIns::Index;

  RecordedOutputs(RecordedGraph& graph, RecordedInputs& inputs, RecordedTrace& trace, Assumptions& assumptions, LateViews& late_views, OpaqueCalls& opaque,
                  const RecordedGradients& gradients)
      : core_(graph), graph_(graph.graph), symbols_(graph.symbols), stand_ins_(graph.stand_ins), present_(graph.present), inputs_(inputs), trace_(trace),
        assumptions_(assumptions), late_views_(late_views), opaque_(opaque), gradients_(gradients) {}

  /// The number of the output that carries a stand-in's value; the same number when asked again.
  std::uint32_t number(PyObject* stand_in);
  /// Whether what a function with gradients of its own gave was to leave, with gradients that are not a part of the graph.
  bool functions_leave() const { return functions_leave_; }
  /// Ends the recording.
  CapturedGraph finish();

 private:
  // Each gives its place in CapturedGraph::tensors.
  std::uint32_t number_output(PyObject* number, CapturedGraph& captured);
  rewrite::Keeping what_torch_keeps(const CapturedGraph& captured) const;
  std::uint32_t scalar_output(const ScalarValue& scalar, PyObject* object, CapturedGraph& captured);
  std::uint32_t tensor_output(Index index, CapturedGraph& captured);
  std::uint32_t fresh_output(Index index, CapturedGraph& captured);
  std::uint32_t crossed_output(Index index, CapturedGraph& captured);
  std::uint32_t parts_output(Index index, CapturedGraph& captured);

  void require_buildable(PyObject* stand_in);
  bool are_parts(Index whole_index, Index first_index) const;
  bool shows_parts(Index index) const;
  ir::ValueId value_of_view(Index index);
  std::optional<Index> viewed_output(Index index) const;
  ir::ValueId unwritten(const StandIn& view);
  void vary_view(TensorOutput& output, const StandIn& view, const StandIn& base);
  void add_updates(CapturedGraph& captured);
  bool is_written_by_graph(std::uint32_t input) const;
  void name_copies(CapturedGraph& captured);

  RecordedGraph& core_;
  ir::Graph& graph_;
  Symbols& symbols_;
  StandIns& stand_ins_;
  PresentValues& present_;
  RecordedInputs& inputs_;
  RecordedTrace& trace_;
  Assumptions& assumptions_;
  LateViews& late_views_;
  OpaqueCalls& opaque_;
  const RecordedGradients& gradients_;
  std::vector<Ref> outputs_;  // by number: stand-ins of tensors and of numbers
  std::unordered_map<PyObject*, std::uint32_t> numbers_;
  std::unordered_map<Index, std::uint32_t> made_;  // stand-in -> index into CapturedGraph::tensors
  bool functions_leave_ = false;
};

}  // namespace tenon::python
