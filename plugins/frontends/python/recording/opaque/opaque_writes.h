// Opaque calls that write into their arguments: made on copies, whose end values are written.
#pragma once

#include <optional>
#include <vector>

#include "python/foreign/foreign_names.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/recording/memory/late_sizes.h"
#include "python/recording/memory/written_memory.h"
#include "python/recording/opaque/opaque_calls.h"

namespace tenon::python {

class OpaqueWrites {
 public:
  using Index = StandIns::Index;

  OpaqueWrites(RecordedGraph& graph, RecordedInputs& inputs, RecordedTrace& trace, LateSizes& late, WrittenMemory& memory, OpaqueCalls& opaque)
      : graph_(graph.graph), stand_ins_(graph.stand_ins), present_(graph.present), inputs_(inputs), trace_(trace), late_(late), memory_(memory), opaque_(opaque) {}

  /// An operator whose schema says which arguments it writes, besides what it gives; nothing for other calls.
  std::optional<Ref> record_declared(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  /// The new value of what an in-place function of torch writes that the catalogue lacks.
  ir::ValueId value_by_torch(PyObject* callable, const ForeignFunction& function, Index target, PyObject* args, PyObject* kwargs);
  /// The new value of the argument that a call of NumPy writes.
  ir::ValueId value_by_numpy(PyObject* callable, const ForeignFunction& function, Index target, PyObject* args, PyObject* kwargs);

 private:
  std::vector<Index> declared_writes(PyObject* schema, const ForeignFunction& function, PyObject* args, PyObject* kwargs) const;

  ir::Graph& graph_;
  StandIns& stand_ins_;
  PresentValues& present_;
  RecordedInputs& inputs_;
  RecordedTrace& trace_;
  LateSizes& late_;
  WrittenMemory& memory_;
  OpaqueCalls& opaque_;
};

}  // namespace tenon::python
