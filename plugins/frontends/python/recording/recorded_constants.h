// Tensors and arrays that the program makes of no tensor: the same at every call.
#pragma once

#include "python/foreign/foreign_names.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/recording/opaque/opaque_calls.h"

namespace tenon::python {

class RecordedConstants {
 public:
  using Index = StandIns::Index;

  RecordedConstants(RecordedGraph& graph, RecordedTrace& trace, OpaqueCalls& opaque)
      : core_(graph), trace_(trace), opaque_(opaque) {}

  /// The stand-in of a tensor, array or scalar that the capture has made.
  Ref add(PyObject* array);
  /// A call without tensors, made now for all calls; of numbers that vary, by the library on every run.
  Ref fold(PyObject* callable, PyObject* args, PyObject* kwargs);
  /// The item of a constant that nothing wrote, at an index that is known: a constant, too. Empty for an array, which shows its memory.
  Ref item(PyObject* args);

 private:
  Ref library_makes(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);

  RecordedGraph& core_;
  RecordedTrace& trace_;
  OpaqueCalls& opaque_;
};

}  // namespace tenon::python
