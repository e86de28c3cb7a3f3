// Functions of the program's with gradients of their own, whose results may leave the graph: their gradients are a part of it.
#pragma once

#include <span>
#include <vector>

#include "python/recording/graph/history.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/recording/recorded_gradients.h"

namespace tenon::python {

/// The program's way back through a function is evaluated where the function is applied, from tensors that stand for the gradients of its results, with
/// grad mode where it may be differentiated. A node `own_gradient` holds what was recorded.
class RecordedFunctions {
 public:
  using Index = StandIns::Index;

  RecordedFunctions(RecordedGraph& graph, const RecordedInputs& inputs, History& history, RecordedTrace& trace, RecordedGradients& gradients)
      : core_(graph), graph_(graph.graph), stand_ins_(graph.stand_ins), inputs_(inputs), history_(history), trace_(trace), gradients_(gradients) {}

  /// Whether a function that is applied now is to be recorded so.
  bool may_leave() const { return history_.functions_may_leave() && depth_ >= 0; }
  /// Whether the ways back of a function are those of another one, of which nobody asks for more than its gradients.
  bool is_in_another() const { return depth_ > 0; }

  /// Makes outputs, which were computed without grad mode, those of a function. Throws GraphBreak where they are not its own. `by_itself`: of what it has
  /// kept, what torch does not know of.
  void begin(std::span<PyObject* const> inputs, std::span<PyObject* const> outputs, std::span<PyObject* const> kept, std::span<PyObject* const> by_itself);
  /// Begins the way back, `again` as one that can be differentiated: gives what stands for the gradients of the outputs.
  std::vector<Ref> begin_way(bool again);
  /// Ends it. `gradients`: of the inputs, None where there is none. Throws GraphBreak where it did what no graph of gradients does.
  void end_way(std::span<PyObject* const> gradients);
  /// The function is applied. `keeps`: torch lets its gradients be asked for once. `once`: it refuses to differentiate them. `absent`: what its gradients are where its
  /// outputs have none, as the op says it.
  void end(bool keeps, bool once, std::string absent);
  /// Throws GraphBreak where gradients are computed here of what such a function gave: the program's way back is to be gone now. Not within one.
  void require_walkable(std::span<PyObject* const> from) const;

 private:
  struct Applied {
    History::AppliedFunction function;
    std::vector<Ref> kept;
    std::vector<ir::ValueId> tangents, gradients, read;  // gradients: no value where there is none
    bool again = false;
    RecordedTrace::Mark trace;
    std::size_t first_node = 0;
    int depth = 0;
  };
  std::vector<ir::ValueId> kept_inputs(const Applied& applied) const;
  void require_followed(const Applied& applied) const;
  std::vector<ir::ValueId> read_from_outside(const Applied& applied) const;

  RecordedGraph& core_;
  ir::Graph& graph_;
  StandIns& stand_ins_;
  const RecordedInputs& inputs_;
  History& history_;
  RecordedTrace& trace_;
  RecordedGradients& gradients_;
  std::vector<Applied> open_;  // each in a way back of the one before it
  int depth_ = 0;              // of ways back; negative: in one whose results have no history
};

}  // namespace tenon::python
