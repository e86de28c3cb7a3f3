// How the results of a call become stand-ins: where they lie, and what they view.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/ops/catalog.h"
#include "core/ops/foreign/foreign_call.h"
#include "python/foreign/foreign_names.h"
#include "python/recording/graph/recorded_graph.h"

namespace tenon::python {

/// Shapes, dtypes and values come from the catalogue; strides and sharing of memory from eager's rules where they are known, else from the
/// library itself, run on twins. Where the two disagree about shape or dtype the capture breaks.
class RecordedResults {
 public:
  using Index = StandIns::Index;

  explicit RecordedResults(RecordedGraph& graph)
      : core_(graph), graph_(graph.graph), symbols_(graph.symbols), stand_ins_(graph.stand_ins), present_(graph.present) {}

  /// Whether `fresh_spec` says how the result lies.
  bool strides_are_known(const ForeignFunction& function, const ops::ForeignResult& result, std::span<const Index> operands) const;
  TensorSpec fresh_spec(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands) const;
  /// The rule for the strides of torch's function itself, where there is one.
  std::optional<ops::AliasLayout> own_layout(const ForeignFunction& function, ir::ValueId value) const;
  /// The operands of a pointwise function as they have a say in the strides of its result.
  std::vector<Operand> as_computed_with(const ForeignFunction& function, ir::ValueId value, std::vector<Operand> operands) const;

  /// The stand-in of a result in memory of its own.
  Ref wrap_fresh(const ForeignFunction& function, const ops::ForeignResult& result, std::span<const Index> operands);
  /// Stand-ins of results that lie as the library says of twins.
  Ref wrap_like_twins(PyObject* callable, const ForeignFunction& function, const ops::ForeignResult& result, PyObject* args, PyObject* kwargs);
  /// The library's answer on twins with stand-ins in the places of its tensors.
  Ref wrap_answer(PyObject* answer, const ForeignFunction& function, std::span<const ir::ValueId> values, std::span<const Index> operands);

  bool lie_unusually(std::span<const Index> operands) const;
  /// What torch makes of other functions it makes of them on the meta device, too. What takes long is not computed to hear how its result lies.
  Ref as_kernels_lay_out(Ref answer, PyObject* callable, PyObject* args, PyObject* kwargs, const ops::ForeignResult& result);

  /// The strides of a stand-in over the numbers that vary; nothing where they cannot be said.
  std::optional<ir::Shape> strides_of(Index index) const;
  /// Guards where operands have gaps, unless what a call has given for them, with the nodes from `first` on, is the same with and without.
  void settle_gaps_for(const ForeignFunction& function, PyObject* kwargs, std::size_t first, std::span<const Index> operands);
  void settle_gaps(std::span<const Index> operands);
  /// Takes note of a node for a call that the library makes, and that only computes: where what it gives lies alike with any gaps of its operands,
  /// these are not guarded for it.
  void note_opaque(ir::NodeId node, PyObject* callable, PyObject* args, PyObject* kwargs);

 private:
  /// Whether one has no elements, and does not lie as row-major ones do: how the results lie differs from function to function.
  bool any_is_empty_otherwise(std::span<const Index> operands) const;
  /// Whether one is row-major but for the stride of a dimension of size 1, which torch's meta kernels do not all keep.
  bool any_is_odd_row(std::span<const Index> operands) const;
  void note_writes(const ForeignFunction& function, Index made, PyObject* twin = nullptr);
  bool has_number_operand(const ForeignFunction& function, ir::ValueId value) const;
  Ref stand_in_for_twin(PyObject* twin, ir::ValueId value, const ForeignFunction& function, std::span<const Index> operands);
  void find_viewed(StandIn& view, std::span<const Index> operands);
  void settle_layout(StandIn& view, Index viewed, std::optional<ir::ValueId> from);
  std::vector<std::vector<Extents>> ways_to_lie(std::span<const Index> operands) const;

  RecordedGraph& core_;
  ir::Graph& graph_;
  Symbols& symbols_;
  StandIns& stand_ins_;
  PresentValues& present_;
  std::vector<ir::NodeId> without_gaps_;  // opaque nodes of which gaps of operands change nothing
};

}  // namespace tenon::python
