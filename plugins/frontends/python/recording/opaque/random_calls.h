// Calls that take random numbers: torch makes them on every run, in the order of the program.
#pragma once

#include "python/foreign/foreign_names.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/opaque/opaque_calls.h"

namespace tenon::python {

class RandomCalls {
 public:
  RandomCalls(RecordedGraph& graph, OpaqueCalls& opaque) : core_(graph), opaque_(opaque) {}

  Ref record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);

 private:
  void note_bounds(PyObject* args, PyObject* kwargs, PyObject* drawn);

  RecordedGraph& core_;
  OpaqueCalls& opaque_;
};

}  // namespace tenon::python
