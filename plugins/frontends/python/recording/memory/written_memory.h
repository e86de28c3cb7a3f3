// What may be written, and what a call leaves in its arguments.
#pragma once

#include <span>

#include "core/ops/foreign/foreign_writes.h"
#include "python/foreign/foreign_names.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"
#include "python/recording/memory/late_sizes.h"

namespace tenon::python {

/// What may not be written throws GraphBreak.
class WrittenMemory {
 public:
  using Index = StandIns::Index;

  WrittenMemory(RecordedGraph& graph, RecordedInputs& inputs, LateSizes& late)
      : core_(graph), graph_(graph.graph), symbols_(graph.symbols), stand_ins_(graph.stand_ins), present_(graph.present), inputs_(inputs), late_(late) {}

  void require_writable(Index index) const;
  /// torch refuses operands that share a part of what is written; NumPy computes as if they were copies. `all`: the very places, too.
  void require_apart(const ForeignFunction& function, Index target, std::span<const Index> operands, bool all);
  /// What is written has the shape of the tensor, for the sizes of all calls.
  void require_shape_of(Index target, ir::ValueId value, const ForeignFunction& function);
  bool same_places(Index a, Index b) const;
  /// Writes what a call leaves in its arguments besides what it gives.
  void write_beside(const ForeignFunction& function, std::span<const ops::ForeignWrite> writes, std::span<const Index> operands);

 private:
  Index written_operand(const ForeignFunction& function, ir::ValueId before, std::span<const Index> operands);

  RecordedGraph& core_;
  ir::Graph& graph_;
  Symbols& symbols_;
  StandIns& stand_ins_;
  PresentValues& present_;
  RecordedInputs& inputs_;
  LateSizes& late_;
};

}  // namespace tenon::python
