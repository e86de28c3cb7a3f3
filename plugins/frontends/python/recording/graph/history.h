// Which tensors of a capture are a part of torch's autograd graph, and which values depend on those.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "python/recording/graph/kept_by_torch.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"

namespace tenon::python {

/// torch keeps history with tensors; a graph has values. Both agree as long as every value that depends on an input that requires grad is read
/// through a tensor that requires grad, or behind a node `detach`: then the gradient of the graph is torch's.
class History {
 public:
  using Index = StandIns::Index;

  /// `wanted`: the gradients of the graph will be asked for. Where not, nothing that torch would differentiate is recorded.
  /// `functions_may_leave`: what functions of the program's give with gradients of their own leaves the graph.
  History(RecordedGraph& core, const RecordedInputs& inputs, bool wanted, bool functions_may_leave) : core_(core), inputs_(inputs), wanted_(wanted), functions_may_leave_(functions_may_leave), kept_by_torch_(core) {}

  /// Whether torch would record a call with these operands: grad mode is on, and one of them requires grad.
  bool tracks(std::span<const Index> operands) const;
  /// Throws GraphBreak where it would, and here nothing can.
  void require_tracked(std::span<const Index> operands) const;

  /// Whether gradients of the graph may be asked for.
  bool wanted() const { return wanted_; }
  bool functions_may_leave() const { return functions_may_leave_; }
  /// torch.Tensor.requires_grad_(wanted). Throws GraphBreak where torch refuses it, or may: of an older tensor that is no leaf, or a view.
  void ask_for_gradient(Index index, bool wanted);
  /// The inputs of which the program has changed whether they require grad, once or more.
  std::span<const Index> asked_inputs() const { return asked_inputs_; }
  /// Makes constants of leaves that the call has made. Throws GraphBreak where a function of the program's own was applied to what was computed from one,
  /// or one of the others was written, or is a view.
  void forget(std::span<const Index> leaves, std::span<const Index> others);
  bool is_forgotten(Index index) const { return never_seen_.contains(index); }
  /// Undoes that, for them and for what was computed from them before.
  void remember(std::span<const Index> leaves);
  /// Whether torch calls a tensor a view: an input as it is in this call.
  bool is_view(Index index) const;
  /// What tracked calls read as the elements of a leaf: an input, and what stands for values that the graph has computed. Its gradient is that of all.
  std::vector<ir::ValueId> values_of_leaf(Index leaf) const;
  /// A leaf has a `.grad` from now on, which the program may keep: what flows to the leaf later is added to it.
  void note_gradient(Index leaf) { with_gradient_.insert(leaf); }
  /// Whether a value depends on a value that the graph has computed for an input, or as the result of a function of the program's: the program sees what
  /// gradients do there. What flows to a leaf that the call has made nobody sees, as long as it has no `.grad`, and neither leaves the graph nor a view of it.
  bool is_on_seen_roots(ir::ValueId value) const;

  /// A torch.autograd.Function that was applied: the program says how gradients flow through it.
  struct AppliedFunction {
    Ref context;
    std::vector<Index> inputs;        // tensors that require grad
    std::vector<ir::ValueId> values;  // of these, as they were
    std::vector<Index> outputs;
    std::vector<ir::ValueId> roots;   // of these: what depends on them depends on the function
    std::vector<std::pair<Index, std::uint32_t>> saved;  // what its backward reads, with the version of its memory
    std::vector<Index> by_itself;     // of these: what torch does not know of
    bool of_hooks = false;            // it gives a tensor as it is, and its hooks the gradient
  };
  /// Throws Unbuildable where a function whose gradients are in the graph keeps a tensor by itself that leaves it: torch reads such a one as it is then.
  void require_not_kept_by_function(Index leaving) const;
  /// Makes outputs, which were computed without grad mode, those of a function. Throws GraphBreak where they are not its own.
  /// `views`: torch gives views, through which it refuses writes.
  void apply(AppliedFunction function, bool views);
  /// The same of a function whose gradients become a part of the graph: what it gives is known by the function's roots until `end_own` names the values
  /// through which its gradients flow.
  void make_own(AppliedFunction& function, bool views);
  void end_own(const AppliedFunction& function, std::span<const ir::ValueId> results);
  /// Whether gradients of a value flow through such a function.
  bool is_behind_own_gradient(ir::ValueId value) const;
  /// Has gradients flow through a tensor that stands for one.
  void track(Index index);
  /// torch.Tensor.retain_grad(): a tensor that the graph computes must be one of torch's autograd graph, on which others depend. Throws GraphBreak.
  void retain_gradient(Index index) const;
  /// Makes tensors the results of a function of themselves. Throws GraphBreak where something was computed from one already.
  /// With `retains` it is of the hooks of a tensor, which are called in the order in which they came: gives the context of those that it has already. Where it
  /// says so, the tensor has a `.grad` from then on.
  Ref hook(Ref context, std::span<const Index> tensors, std::optional<bool> retains);
  /// Throws Unbuildable where a tensor was written since that retains its gradient: torch retains that of what was written.
  void require_retaining_unwritten(const AppliedFunction& hooks) const;
  /// The function of the hooks on a tensor, as it is now.
  const AppliedFunction* hooks_of(Index index) const;
  /// Whether gradients of a value flow to one of the others, through whatever functions.
  bool leads_to(ir::ValueId value, std::span<const ir::ValueId> others) const;
  /// Whether a function of the program's gave it as a view, or one that it was viewed from.
  bool is_view_of_function(Index index) const { return function_view(index).has_value(); }
  /// Throws GraphBreak for such a view whose memory was written since: torch refuses its history.
  void require_view_unwritten(Index index) const;
  bool retains_gradient(Index index) const { return retaining_.contains(index); }
  /// Gradients flow through these only to the `.grad` of all leaves.
  void let_through_to_all_leaves(std::span<const Index> tensors) { to_all_leaves_.insert(to_all_leaves_.end(), tensors.begin(), tensors.end()); }
  std::span<const Index> through_to_all_leaves() const { return to_all_leaves_; }
  /// How many writes there were when torch last kept something for gradients.
  std::size_t writes_before_kept() const { return writes_before_kept_; }
  std::span<const AppliedFunction> functions() const { return functions_; }
  /// Of these, and of those with a part of the graph for their gradients.
  std::size_t function_count() const { return functions_.size() + own_.size(); }
  /// Throws GraphBreak where something was written that the backward of a function reads, of which torch says an error.
  void require_unwritten(const AppliedFunction& function) const;
  /// The same, naming what it gave, of the functions with a part of the graph for their gradients through which those of a value flow.
  void require_own_unwritten(ir::ValueId value) const;
  /// Whether a value depends on a value.
  bool is_on(ir::ValueId value, ir::ValueId root) const;

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

  /// Of the nodes of a tracked call, which begin there, leaves only ops with a gradient.
  void expand_from(std::size_t first_node);
  /// Notes a tracked call, whose stand-ins and nodes begin with these.
  void note_call(KeptByTorch::Call call, Index first, std::size_t first_node);
  std::vector<KeptByTorch::Operand> operands_of(std::span<const Index> tensors) const { return kept_by_torch_.operands_of(tensors); }
  /// Throws Unbuildable where something was written that torch keeps for gradients that flow from `ends` to `wanted`.
  void require_kept_unwritten(std::span<const ir::ValueId> ends, std::span<const ir::ValueId> wanted);
  bool lets_go(std::span<const ir::NodeId> reading, std::span<const ir::NodeId> others) const { return kept_by_torch_.lets_go(reading, others); }
  /// torch's engine comes to leaves with higher numbers first.
  std::int64_t turn_of_leaf(Index leaf) const { return kept_by_torch_.turn_of_leaf(leaf); }
  /// The inputs of which tracked calls have kept nothing.
  std::vector<std::uint32_t> loose_inputs() const;
  /// A value of stand-ins is now known by another one.
  void move_value(ir::ValueId from, ir::ValueId to);
  /// Notes what it gives.
  void note_results(PyObject* results, Index first);
  /// Notes the nodes from the given number on: torch would differentiate them.
  void note_tracked(std::size_t first_node);
  /// Notes a node through which gradients have flowed, for the last time.
  void note_walked(ir::NodeId node) { to_come_.erase(node.value); }
  /// Throws GraphBreak for a write of which torch would refuse the gradient, or that makes an input one of another history.
  void require_writable(Index target);
  /// The value that was written over another one by a call whose nodes begin there. torch's history goes on through what was there, which gets zeros.
  ir::ValueId written_over(ir::ValueId before, ir::ValueId after, std::size_t first_node);
  /// The operands of a tracked call that require grad, and that none of its nodes reads.
  std::vector<Index> unread(std::span<const Index> operands, Index first, std::size_t first_node) const;
  /// Has torch's history of what a call gave, from `first` on, go on through such operands, which get zeros.
  void go_on_through(std::span<const Index> unread, Index first);
  /// Notes that the value was written by a tracked call: all that shares the memory requires grad then.
  void note_write(Index target);

 private:
  bool is_written(const AppliedFunction& function) const;
  void give_value_of_its_own(Index index, std::size_t first_node);
  bool depends(ir::ValueId value);
  bool depends_now(ir::ValueId value) const;
  bool required_before(std::uint32_t input) const { return inputs_.spec(input).requires_grad; }
  void ask_of_input(Index index, bool wanted);
  void look_anew();
  void ask_storages_anew();
  ir::ValueId root(Index leaf, ir::ValueId value);
  ir::ValueId new_root(ir::ValueId value);
  bool are_gradients_to_come(Index leaf);
  bool reads_present_root(Index index) const;
  std::optional<Index> function_view(Index index) const;
  bool is_leaf_memory(Index index) const { return core_.stand_ins[core_.stand_ins.owner(index)].leaf; }
  bool is_input_memory(Index index) const { return core_.stand_ins[core_.stand_ins.owner(index)].input.has_value(); }

  RecordedGraph& core_;
  const RecordedInputs& inputs_;
  const bool wanted_, functions_may_leave_;
  KeptByTorch kept_by_torch_;
  bool tracking_ = false;
  std::vector<signed char> depends_;  // by ValueId: 1 on an input that requires grad, 0 on none, -1 not known yet
  struct Roots {
    std::vector<ir::ValueId> of, roots;  // the computed value, and the root that stands for it
  };
  std::unordered_map<Index, Roots> roots_;                 // of leaves
  struct Forgotten {
    Roots roots;
    std::vector<Index> others;  // that required grad because of these leaves, by the first leaf
  };
  std::unordered_map<Index, Forgotten> forgotten_;
  std::unordered_set<Index> with_gradient_;
  std::unordered_set<Index> never_seen_;  // such leaves, and others like them: the program is not to see these
  std::unordered_set<std::uint32_t> to_come_;              // tracked nodes through which gradients may still flow
  std::unordered_set<Index> kept_;                         // memory, by owner, of which torch may keep something
  std::vector<AppliedFunction> functions_;                 // in their order
  std::vector<AppliedFunction> own_;                       // with a part of the graph for their gradients; roots: the values through which these flow
  std::unordered_map<Index, std::uint32_t> function_views_;  // of what functions gave as views: the version of the memory then
  std::vector<Index> to_all_leaves_;
  std::vector<Index> asked_inputs_;
  std::unordered_set<Index> retaining_;
  std::size_t writes_before_kept_ = 0;
  std::unordered_map<Index, std::uint32_t> view_versions_; // of views that tracked calls gave: the version of the memory then
  std::size_t looked_at_ = 0;         // how many nodes of the graph were, from the first on
};

}  // namespace tenon::python
