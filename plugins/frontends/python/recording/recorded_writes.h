// How a call that writes into a tensor becomes nodes: the new value of what it writes.
#pragma once

#include "python/foreign/foreign_names.h"
#include "python/recording/graph/history.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/recording/memory/late_sizes.h"
#include "python/recording/memory/late_views.h"
#include "python/recording/memory/recorded_results.h"
#include "python/recording/memory/written_memory.h"
#include "python/recording/op_calls.h"
#include "python/recording/opaque/opaque_writes.h"
#include "python/recording/recorded_constants.h"
#include "python/recording/writing_call.h"

namespace tenon::python {

class RecordedWrites {
 public:
  using Index = StandIns::Index;

  RecordedWrites(RecordedGraph& graph, RecordedInputs& inputs, History& history, RecordedTrace& trace, RecordedResults& results, LateSizes& late, LateViews& late_views, WrittenMemory& memory,
                 OpaqueWrites& opaque_writes, RecordedConstants& constants, OpCalls& op_calls)
      : core_(graph), inputs_(inputs),
        history_(history), trace_(trace), results_(results), late_(late), late_views_(late_views), memory_(memory), opaque_writes_(opaque_writes), constants_(constants), op_calls_(op_calls) {}

  Ref record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, const WritingCall& call);

 private:
  Ref written_result(PyObject* callable, const ForeignFunction& function, Index target, const WritingCall& call);
  bool write_part(const ForeignFunction& function, Index whole, PyObject* index, PyObject* value);
  bool is_written_as_first(const ForeignFunction& function, Index target, const WritingCall& call) const;
  bool counts_write(PyObject* callable, Index target, PyObject* args, PyObject* kwargs) const;
  // recorded_reshapes.cpp
  Ref reshape(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::optional<Index> target);
  void require_reshapable(const ForeignFunction& function, std::optional<Index> target) const;
  Ref in_complex(PyObject* number, TensorKind kind, DType dtype);
  ir::ValueId new_value(PyObject* callable, const ForeignFunction& function, Index target, const WritingCall& call);
  ir::ValueId written_value(const ForeignFunction& function, Index target, ir::ValueId value);

  RecordedGraph& core_;
  RecordedInputs& inputs_;
  History& history_;
  RecordedTrace& trace_;
  RecordedResults& results_;
  LateSizes& late_;
  LateViews& late_views_;
  WrittenMemory& memory_;
  OpaqueWrites& opaque_writes_;
  RecordedConstants& constants_;
  OpCalls& op_calls_;
};

}  // namespace tenon::python
