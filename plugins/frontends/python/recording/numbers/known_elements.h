// Elements of small arrays, and NumPy's numbers, that come of numbers which vary and of nothing else: Python has them before the graph runs.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "python/foreign/foreign_names.h"
#include "python/recording/graph/known_values.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/numbers/scalar_arithmetic.h"

namespace tenon::python {

/// `int(np.ceil(n / 2))`, `np.int64(n)`, `np.array(x.shape)[0] // 2`: by NumPy's own rules, as Python's numbers and steps of the tape of floats.
class KnownElements {
 public:
  using Index = StandIns::Index;

  KnownElements(RecordedGraph& graph, KnownValues& known, FloatSteps& floats, ScalarArithmetic& arithmetic)
      : core_(graph), known_(known), floats_(floats), arithmetic_(arithmetic) {}

  /// Python's number (a bool, an int or a float) for an array of one element or a number of NumPy; empty where it is not known.
  Ref number(PyObject* stand_in);
  /// The arguments of a call with Python's ints in the places of NumPy's int64 which are known, of which arrays have the same dtype; empty where there are none.
  Ref with_integers(PyObject* arguments);

 private:
  using Elements = std::vector<Ref>;
  /// Of an array of at most one dimension; nothing where they are not known.
  std::optional<Elements> elements(Index index);
  std::optional<Elements> elements_of(PyObject* object);
  std::optional<Elements> made(const StandIn& s);
  std::optional<Elements> item_of(PyObject* args);
  std::optional<Elements> reduced(std::string_view name, Elements given, DType dtype);
  Ref applied(const ForeignFunction& function, PyObject* callable, std::span<const Ref> numbers, DType dtype);
  Ref converted(Ref number, DType dtype);

  RecordedGraph& core_;
  KnownValues& known_;
  FloatSteps& floats_;
  ScalarArithmetic& arithmetic_;
  std::unordered_map<Index, std::optional<Elements>> known_elements_;
};

}  // namespace tenon::python
