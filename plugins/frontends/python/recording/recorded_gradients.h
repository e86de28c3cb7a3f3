// Walks of torch's autograd engine, as nodes of the graph that they walk through.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/rewrite/differentiate.h"
#include "python/recording/graph/history.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/recording/handed_gradients.h"
#include "python/recording/memory/recorded_results.h"

namespace tenon::python {

class RecordedGradients {
 public:
  using Index = StandIns::Index;

  RecordedGradients(RecordedGraph& graph, const RecordedInputs& inputs, History& history, RecordedResults& results, RecordedTrace& trace)
      : core_(graph), graph_(graph.graph), stand_ins_(graph.stand_ins), inputs_(inputs), history_(history), results_(results), trace_(trace) {}

  Recorder::Walked walk(const Recorder::GradientWalk& walk, GuardSet& guards);
  Recorder::Walked walk_behind(std::size_t function, const Recorder::GradientWalk& walk, GuardSet& guards);
  /// A function of the program's as it is applied now.
  History::AppliedFunction function_of(Ref context, std::span<PyObject* const> inputs, std::span<PyObject* const> outputs, std::span<PyObject* const> saved) const;
  /// A stand-in for a value as the gradient of a tensor.
  Ref as_gradient(ir::ValueId gradient, Index of) { return wrap(gradient, {of, {}, false, false}, false); }
  void apply_function(PyObject* context, std::span<PyObject* const> inputs, std::span<PyObject* const> outputs, std::span<PyObject* const> saved, bool views);
  /// Whether the program has put no hooks on the leaves so far. Guarded.
  bool guard_leaves_without_hooks(GuardSet& guards);
  bool take_gradient(PyObject* tensor, PyObject* value);
  /// The inputs of the graph of which torch would keep nothing for the gradients of what was recorded.
  std::vector<std::uint32_t> loose_inputs() const { return core_.walked ? std::vector<std::uint32_t>() : history_.loose_inputs(); }
  /// By input of the graph that requires grad: when torch's engine comes to it, as `CapturedGraph::turns` says.
  std::vector<std::int64_t> turns() const;
  bool lets_go(std::span<const ir::NodeId> reading, std::span<const ir::NodeId> others) const { return history_.lets_go(reading, others); }
  /// Whether there was a walk.
  bool any() const { return core_.walked; }
  /// Whether a tensor has a `.grad` of its own: one that was there before, or a leaf.
  bool keeps_gradient(PyObject* tensor) const;
  /// Whether the program has asked that it have one.
  bool retains_gradient(Index index) const { return history_.retains_gradient(index); }
  bool is_view_of_function(Index index) const { return history_.is_view_of_function(index); }
  /// Whether it is a leaf, or a copy in place of one, that only what is evaluated for torch may see.
  bool is_forgotten(Index index) const { return history_.is_forgotten(index); }
  /// Whether the gradients of a value, which are still to come, are by what the graph itself has made leaves of.
  void require_not_kept_by_function(Index leaving) const { history_.require_not_kept_by_function(leaving); }
  bool needs_roots(ir::ValueId value) const { return history_.is_on_seen_roots(value) && !is_spent(value); }
  /// Throws Unbuildable where something was written that torch keeps for the gradients of a value, which may be asked for later. After a walk only what
  /// the walks go through is looked at: a program may well leave the rest to nobody.
  void require_kept_unwritten(ir::ValueId value) const;
  /// The first result of a function of the program's through which gradients of a value are still to come; none where there is no such function.
  std::optional<Index> unwalked_function(ir::ValueId value) const;
  /// Whether a walk has gone through what a value was computed with, and torch has let go of what that kept.
  bool is_spent(ir::ValueId value) const;

 private:
  /// What a gradient is asked for.
  struct Wanted {
    Index tensor = 0;
    std::vector<ir::ValueId> values;  // those that torch takes for it
    bool reached = false;
    bool hooked = false;
  };
  std::vector<rewrite::Seed> seeds_of(const Recorder::GradientWalk& walk);
  ir::ValueId adjoint(PyObject* gradient, ir::ValueId of, bool tracked);
  /// Which functions of the program torch calls: where gradients of some tensors are asked for, those alone that lead to one.
  std::vector<bool> functions_on_the_way(const Recorder::GradientWalk& walk, std::span<const Wanted> wanted) const;
  Ref as_handed(HandedGradients& handed, const Wanted& wanted, ir::ValueId gradient, Ref object, bool is_seen, Recorder::Walked& walked);
  Recorder::Walked walk_from(std::span<const rewrite::Seed> seeds, const Recorder::GradientWalk& walk, std::span<PyObject* const> from, GuardSet& guards);
  void take_behind_hooks(std::vector<Wanted>& wanted) const;
  std::vector<Wanted> wanted_of(const Recorder::GradientWalk& walk, std::span<const rewrite::Seed> seeds, GuardSet& guards);
  bool guard_leaf(Index leaf, PyObject* tensor, GuardSet& guards);
  bool is_spent_function(std::size_t function) const { return spent_.functions.contains(function) || walked_.functions.contains(function); }
  std::vector<Index> leaves() const;
  std::vector<ir::ValueId> tracked_values() const;
  void require_no_function(ir::ValueId value) const;
  void require_not_through_to_all_leaves(std::span<const rewrite::Seed> seeds) const;
  void require_not_spent(std::span<const rewrite::Seed> seeds, std::span<const ir::ValueId> wanted) const;
  std::vector<std::optional<ir::ValueId>> differentiate(const Recorder::GradientWalk& walk, std::span<const rewrite::Seed> seeds, std::span<const ir::ValueId> wanted);
  ir::ValueId of_kind(std::span<const std::optional<ir::ValueId>> parts, const Wanted& wanted);
  Ref wrap(ir::ValueId gradient, const Wanted& wanted, bool tracked);

  RecordedGraph& core_;
  ir::Graph& graph_;
  StandIns& stand_ins_;
  const RecordedInputs& inputs_;
  History& history_;
  RecordedResults& results_;
  RecordedTrace& trace_;
  struct Spent {
    std::unordered_map<std::uint32_t, bool> nodes;  // with whether their gradients are computed from what they read or give
    std::unordered_set<std::size_t> functions;
  };
  bool are_spent(const Spent& spent, std::span<const ir::NodeId> nodes) const;
  Spent spent_, walked_;  // by walks before, and by the present or last one
};

}  // namespace tenon::python
