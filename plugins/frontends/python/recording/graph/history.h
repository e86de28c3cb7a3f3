// Which tensors of a capture are a part of torch's autograd graph, and which values depend on those.
#pragma once

#include <span>
#include <vector>

#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"

namespace tenon::python {

/// torch keeps history with tensors; a graph has values. Both agree as long as every value that depends on an input that requires grad is read
/// through a tensor that requires grad, or behind a node `detach`: then the gradient of the graph is torch's.
class History {
 public:
  using Index = StandIns::Index;

  /// `wanted`: the gradients of the graph will be asked for. Where not, nothing that torch would differentiate is recorded.
  History(RecordedGraph& core, const RecordedInputs& inputs, bool wanted) : core_(core), inputs_(inputs), wanted_(wanted) {}

  /// Whether torch would record a call with these operands: grad mode is on, and one of them requires grad.
  bool tracks(std::span<const Index> operands) const;
  /// Throws GraphBreak where it would, and here nothing can.
  void require_tracked(std::span<const Index> operands) const;

  /// Whether a tensor is the result of a call that torch would record.
  bool has_node(PyObject* stand_in) const;

  /// While it lives, calls are recorded as torch would record them.
  class Scope {
   public:
    Scope(History& history, bool tracks) : history_(history), before_(history.tracking_) { history.tracking_ = tracks; }
    ~Scope() { history_.tracking_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    History& history_;
    const bool before_;
  };
  bool tracking() const { return tracking_; }

  /// The value of a stand-in as an operand: one that torch would not differentiate by is a constant.
  ir::ValueId operand(Index index, ir::ValueId value);
  /// The value cut off from what it depends on: for what leaves torch's autograd graph.
  ir::ValueId cut(ir::ValueId value);

  /// Notes what a tracked call gives. `first`: the first stand-in that it has made.
  void note_results(PyObject* results, Index first);
  /// Throws GraphBreak for a write of which torch would refuse the gradient, or that makes an input one of another history.
  void require_writable(Index target);
  /// Notes that the value was written by a tracked call: all that shares the memory requires grad then.
  void note_write(Index target);

 private:
  bool depends(ir::ValueId value);
  bool depends_now(ir::ValueId value) const;
  bool is_input_memory(Index index) const { return core_.stand_ins[core_.stand_ins.owner(index)].input.has_value(); }

  RecordedGraph& core_;
  const RecordedInputs& inputs_;
  const bool wanted_;
  bool tracking_ = false;
  std::vector<signed char> depends_;  // by ValueId: 1 on an input that requires grad, 0 on none, -1 not known yet
  std::size_t looked_at_ = 0;         // how many nodes of the graph were, from the first on
};

}  // namespace tenon::python
