// Who records a call of a library on tensors: as its op, as a write, or as a call that the library makes again; under autocast with its casts.
#pragma once

#include <optional>

#include "python/foreign/foreign_names.h"
#include "python/recording/graph/history.h"
#include "python/recording/graph/known_values.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/memory/late_sizes.h"
#include "python/recording/op_calls.h"
#include "python/recording/opaque/opaque_calls.h"
#include "python/recording/opaque/opaque_twins.h"
#include "python/recording/opaque/opaque_writes.h"
#include "python/recording/recorded_constants.h"
#include "python/recording/recorded_writes.h"
#include "python/stand_ins/stand_in_uses.h"

namespace tenon::python {

class RecordedCalls {
 public:
  using Index = StandIns::Index;

  /// `uses`: takes a call that is made again with other arguments.
  RecordedCalls(RecordedGraph& graph, History& history, StandInUses& uses, KnownValues& known, LateSizes& late, OpaqueCalls& opaque, OpaqueWrites& opaque_writes, RecordedConstants& constants,
                OpCalls& op_calls, RecordedWrites& writes, RecordedResults& results)
      : core_(graph), graph_(graph.graph), stand_ins_(graph.stand_ins), present_(graph.present), history_(history), uses_(uses), known_(known), late_(late), opaque_(opaque),
        opaque_writes_(opaque_writes), constants_(constants), op_calls_(op_calls), writes_(writes), results_(results), twins_(graph, known) {}

  /// Where the library reads the number that an operand holds, the call is recorded with that number, if it is known.
  Ref record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);

 private:
  Ref record_here(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref record_as_is(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref record_by_kind(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands);
  Ref ask_for_gradient(const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref split_by_expressions(const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  // recorded_autocast.cpp
  std::optional<TorchState::Autocast> autocast_of(std::span<const Index> operands) const;
  std::optional<Ref> record_under_autocast(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, TorchState::Autocast of);
  Ref with_casts(PyObject* arguments, PyObject* casts, Py_ssize_t& next);

  RecordedGraph& core_;
  ir::Graph& graph_;
  StandIns& stand_ins_;
  PresentValues& present_;
  History& history_;
  StandInUses& uses_;
  KnownValues& known_;
  LateSizes& late_;
  OpaqueCalls& opaque_;
  OpaqueWrites& opaque_writes_;
  RecordedConstants& constants_;
  OpCalls& op_calls_;
  RecordedWrites& writes_;
  RecordedResults& results_;
  OpaqueTwins twins_;
};

}  // namespace tenon::python
