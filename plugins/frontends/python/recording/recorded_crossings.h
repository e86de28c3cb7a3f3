// What goes from one library to the other: a tensor becomes an array with the same memory, an array a tensor. In the graph both are one
// value, and a write through either is seen through the other, as through views.
#pragma once

#include <optional>

#include "python/foreign/foreign_names.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/stand_ins/stand_in_uses.h"

namespace tenon::python {

class RecordedCrossings {
 public:
  using Index = StandIns::Index;

  /// `uses`: takes the calls that a crossing comes to.
  RecordedCrossings(RecordedGraph& graph, RecordedTrace& trace, StandInUses& uses)
      : core_(graph), trace_(trace), uses_(uses) {}

  /// Nothing where the call is an ordinary one.
  std::optional<Ref> record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);

 private:
  Ref crossed(Index index, bool copied);
  Ref with_arrays(PyObject* arguments);
  Ref tensor_from_array(const ForeignFunction& function, Index array, PyObject* args, PyObject* kwargs);
  Ref tensor_from_scalar(PyObject* callable, const ForeignFunction& function, Index scalar);
  std::optional<Ref> tensor_from_scalars(PyObject* callable, const ForeignFunction& function, PyObject* list, PyObject* dtype);
  std::optional<Ref> record_array_index(PyObject* callable, PyObject* args, PyObject* kwargs);
  Ref tensor_of_indices(PyObject* array, bool alone);

  RecordedGraph& core_;
  RecordedTrace& trace_;
  StandInUses& uses_;
};

}  // namespace tenon::python
