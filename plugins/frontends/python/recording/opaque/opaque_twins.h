// What the library says of an opaque call, asked on twins.
#pragma once

#include <span>

#include "python/foreign/foreign_names.h"
#include "python/recording/graph/known_values.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/opaque/opaque_use.h"

namespace tenon::python {

class OpaqueTwins {
 public:
  using Index = StandIns::Index;

  OpaqueTwins(RecordedGraph& graph, KnownValues& known) : stand_ins_(graph.stand_ins), known_(known) {}

  /// What the call gives for twins. Throws GraphBreak where that cannot be said without computing it, and where it writes what it does not say.
  Ref call(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args, PyObject* kwargs, const OpaqueUse& use);
  /// Whether torch would differentiate what the call gives by these operands; nothing where it cannot be said without computing it.
  std::optional<bool> have_gradient(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args, PyObject* kwargs);
  /// Throws GraphBreak where torch takes no tensor without dimensions in the place where one is given: a number is meant, and it requires grad, or a bool.
  void require_no_number(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args, PyObject* kwargs);
  /// What torch keeps of the call, as tenon._kept_runs.outlook has it; empty where it cannot say.
  Ref outlook(PyObject* callable, std::span<const Index> operands, PyObject* args, PyObject* kwargs);
  /// What an in-place function gives must be the tensor that it wrote, with the metadata that it had.
  void require_written(PyObject* answer, const ForeignFunction& function, Index written) const;

 private:
  Ref call_with_number(PyObject* callable, std::span<const Index> operands, PyObject* twin_args, PyObject* twin_kwargs);

  StandIns& stand_ins_;
  KnownValues& known_;
};

/// A twin's version, which torch counts up when it writes.
long version_of(PyObject* twin);

}  // namespace tenon::python
