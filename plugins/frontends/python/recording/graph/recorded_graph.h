// The graph of a capture while it is recorded: what every part of the recorder shares.
#pragma once

#include <optional>
#include <span>

#include "core/ops/build/node_builder.h"
#include "python/library/error_handling.h"
#include "python/library/torch_state.h"
#include "python/recording/graph/number_bounds.h"
#include "python/recording/graph/recorded_draws.h"
#include "python/recording/graph/tensor_places.h"
#include "python/stand_ins/present_values.h"
#include "python/stand_ins/stand_ins.h"
#include "python/symbols/symbols.h"

namespace tenon::python {

struct RecordedGraph {
  using Index = StandIns::Index;

  /// Which numbers may be symbols, and what is known of them, outlive the recording.
  struct Numbers {
    Dynamic dynamic = Dynamic::never;
    NumberHistory& history;
    NumberFacts& facts;
  };
  RecordedGraph(const TorchState& state, Numbers numbers, TensorPlaces::Allowed places) : state(state), places(places), alone(numbers.history.graph_alone), symbols(graph, numbers.dynamic, numbers.history, numbers.facts) {}
  RecordedGraph(const RecordedGraph&) = delete;
  RecordedGraph& operator=(const RecordedGraph&) = delete;

  const TorchState state;  // as the capture began
  TensorPlaces places;
  const bool alone;        // it computes all floats: it will run without the guards
  ir::Graph graph;
  ops::NodeBuilder builder{graph};
  Symbols symbols;
  StandIns stand_ins;
  PresentValues present{stand_ins, builder};
  NumberBounds bounds{graph};               // of values
  ErrorHandlings error_handlings;           // of the nodes
  std::optional<ir::ValueId> random_token;  // of the last call that took random numbers
  RecordedDraws draws;                      // such calls
  bool draws_by_kernels = false;            // some of them draw by kernels of ours, from what torch's generator says
  bool draws_by_calls = false;              // others are calls of the library's
  bool walked = false;                      // gradients have been computed in it
  int branches = 0;                         // of control ops that were begun and are not chosen among yet

  bool in_branch() const { return branches > 0; }
  /// Whether a run of the nodes so far may end in one of them.
  bool any_may_raise() const;

  /// A stand-in in memory of its own.
  Index add_fresh(TensorKind kind, ir::ValueId value, const TensorSpec& spec);
  /// Where a call of these tensors computes: where those with dimensions are, on a device before the host. One without dimensions says so only
  /// where there is no other: beside tensors of the host torch takes the number that it holds (`alpha`, a value to fill with).
  ir::Device device_of(std::span<const Index> operands) const;
  /// The value in the host's memory, where Python's numbers are made of it.
  ir::ValueId on_host(ir::ValueId value) { return builder.to_device(value, {}); }
  /// Whether a size of a value depends on data.
  bool is_late(ir::ValueId value) const;
  /// Whether it lies in memory whose size depends on data.
  bool in_late_memory(Index index) const { return is_late(stand_ins[stand_ins.owner(index)].value); }
  /// Whether it is a tensor that was made in inference mode, or a view of one.
  bool is_inference(Index index) const { return stand_ins[stand_ins.owner(index)].inference; }
  /// Sizes of 0 and 1 behave in ways of their own (strides, reductions of nothing, broadcasting): results keep to what the present sizes are.
  void settle_extents(std::span<const ir::ValueId> values);
  /// In a capture to come the sizes are constants.
  void fix_sizes_to_come(Index index);
  /// The truth of a tensor of one element as control ops take it: bool[].
  ir::ValueId condition(PyObject* predicate);
};

/// Whether it is a tensor of torch or an array of NumPy.
bool is_tensor(PyObject* object);

}  // namespace tenon::python
