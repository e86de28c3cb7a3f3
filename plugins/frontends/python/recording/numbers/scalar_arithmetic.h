// Arithmetic of numbers that vary: before the graph runs where that can be, else in the graph.
#pragma once

#include <string_view>

#include "python/recording/numbers/computed_numbers.h"
#include "python/recording/numbers/float_steps.h"
#include "python/recording/numbers/recorded_texts.h"

namespace tenon::python {

/// As StandInUses says.
class ScalarArithmetic {
 public:
  ScalarArithmetic(RecordedGraph& graph, FloatSteps& floats, ComputedNumbers& computed, RecordedTexts& texts)
      : core_(graph), floats_(floats), computed_(computed), texts_(texts) {}

  /// Of floats, of which one at least is a stand-in.
  Ref of_scalars(FloatTape::Op op, PyObject* a, PyObject* b);
  /// Of plain numbers and symbolic ints, in floats; empty where it must be done with their values.
  Ref of_ints(FloatTape::Op op, PyObject* a, PyObject* b);
  Ref magnitude(PyObject* a);
  bool compare(int operation, PyObject* a, PyObject* b);
  /// int(), round(), or a function of the module math that gives an int.
  Ref whole_number(PyObject* number, std::string_view function);
  /// round() to digits: computed before the graph runs, or made when it has run, as a float that only leaves the call.
  Ref rounded(PyObject* number, PyObject* digits);

 private:
  RecordedGraph& core_;
  FloatSteps& floats_;
  ComputedNumbers& computed_;
  RecordedTexts& texts_;
};

}  // namespace tenon::python
