// Python's numbers of a tensor's element: item(), int(), float(), and what a tensor is formatted as.
#pragma once

#include "python/recording/graph/history.h"
#include "python/recording/graph/known_values.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/numbers/computed_numbers.h"
#include "python/recording/numbers/known_elements.h"
#include "python/recording/numbers/scalar_arithmetic.h"

namespace tenon::python {

class ElementNumbers {
 public:
  using Index = StandIns::Index;

  ElementNumbers(RecordedGraph& graph, History& history, KnownValues& known, KnownElements& elements, ComputedNumbers& computed, ScalarArithmetic& arithmetic)
      : core_(graph), history_(history), known_(known), elements_(elements), computed_(computed), arithmetic_(arithmetic) {}

  /// `item()` (no type), `float()`, `int()` of a number, or of a tensor or array of one element, where Python's number is the element itself.
  /// Empty where the elements are needed.
  Ref number(PyObject* stand_in, PyTypeObject* type);
  /// Tensors without dimensions are formatted as what item() gives, and so are NumPy's numbers where there is a specification. Empty for others.
  Ref number_in_format(PyObject* stand_in, PyObject* spec);

 private:
  RecordedGraph& core_;
  History& history_;
  KnownValues& known_;
  KnownElements& elements_;
  ComputedNumbers& computed_;
  ScalarArithmetic& arithmetic_;
};

}  // namespace tenon::python
