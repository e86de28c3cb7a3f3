// What is the same at every call, since the program makes it of constants alone: Python may ask for its elements without a break.
#pragma once

#include <functional>
#include <optional>

#include "python/foreign/foreign_names.h"
#include "python/library/torch_state.h"
#include "python/recording/graph/recorded_graph.h"

namespace tenon::python {

/// Whether a number or text that varies is among arguments, in tuples, lists, dicts and slices too.
bool holds_varying_number(PyObject* arguments);

/// A slice with some of its parts replaced. `replace` gives nothing for what stays as it is.
Ref with_bounds_replaced(PyObject* slice, const std::function<Ref(PyObject*)>& replace);

class KnownValues {
 public:
  using Index = StandIns::Index;

  explicit KnownValues(RecordedGraph& graph) : stand_ins_(graph.stand_ins), state_(graph.state) {}

  /// Notes of the results of a call of what is known that they can be known, too.
  void note(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, PyObject* result);
  /// The tensor, array or scalar itself for which a stand-in stands, where it is the same at every call and nothing wrote it; empty for others.
  Ref value(Index index, int links = 0);
  std::optional<bool> truth(PyObject* stand_in);
  /// What Python makes of elements, of tensors that are known; nothing where they are not.
  std::optional<Ref> answer(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  /// The arguments of a call with Python's ints in the places of integers of the library of which the value is known, everywhere or as the bounds
  /// of slices alone; empty where there are none.
  Ref with_integers(PyObject* arguments, bool only_bounds = false);
  /// NumPy's subscript with Python's ints for integers of NumPy of which the value is known: they select, so that what they give is a view.
  Ref with_indices(PyObject* args);

 private:
  std::optional<Ref> with_values(PyObject* arguments);
  Ref integer(PyObject* object);

  StandIns& stand_ins_;
  const TorchState& state_;
};

}  // namespace tenon::python
