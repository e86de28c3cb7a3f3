// Functions of the module math, min() and max(), of numbers that vary.
#pragma once

#include "python/recording/numbers/computed_numbers.h"
#include "python/recording/numbers/float_steps.h"

namespace tenon::python {

class ScalarFunctions {
 public:
  ScalarFunctions(RecordedGraph& graph, FloatSteps& floats, ComputedNumbers& computed)
      : core_(graph), floats_(floats), computed_(computed) {}

  /// What such a function gives; where it cannot be followed, it is called for real and asks the stand-ins for their values.
  Ref call(PyObject* callable, PyObject* args);

 private:
  Ref extreme_of_ints(PyObject* args, bool least);
  Ref extreme_of_floats(PyObject* args, bool least);

  RecordedGraph& core_;
  FloatSteps& floats_;
  ComputedNumbers& computed_;
};

}  // namespace tenon::python
