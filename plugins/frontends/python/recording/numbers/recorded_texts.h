// Texts made of numbers that vary, or that the graph computes.
#pragma once

#include "python/guards/recorder.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"

namespace tenon::python {

class RecordedTexts {
 public:
  RecordedTexts(RecordedGraph& graph, RecordedInputs& inputs) : core_(graph), inputs_(inputs) {}

  /// A str that was there before the call: its stand-in, with the guards on it added; empty for one that is a constant.
  Ref input(PyObject* object, SourceId source, GuardSet& guards);
  /// Whether one was read.
  bool any_input() const { return any_input_; }
  /// The str that a function makes of arguments among which are stand-ins of numbers; empty where they must be known.
  Ref made(PyObject* function, PyObject* arguments);

 private:
  RecordedGraph& core_;
  RecordedInputs& inputs_;
  bool any_input_ = false;
};

/// How the str for which such a stand-in stands is made; none for others, and for one that is an input.
std::optional<Recorder::LateCall> how_text_is_made(PyObject* stand_in);

}  // namespace tenon::python
