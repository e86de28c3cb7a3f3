// Iterators: made, advanced, exhausted.
#pragma once

#include <limits>
#include <vector>

#include "python/guards/recorder.h"
#include "python/heap/heap.h"
#include "python/segments/capture_options.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Sets the StopIteration of what returned that; null for nothing.
void set_stop_iteration(PyObject* result);

/// Asks generators, loops, operators.
class Iteration {
 public:
  Iteration(Evaluator& core, Heap& heap, Recorder& recorder, const CaptureOptions& options) : core_(core), heap_(heap), recorder_(recorder), options_(options) {}

  /// `of_loop`: only a loop of the program takes its items.
  Ref iterator_of(PyObject* iterable, bool of_loop = false);
  /// Breaks where a stand-in has more items than are taken apart, unless a whole graph is demanded.
  void require_few_items(PyObject* stand_in);
  /// For C code that iterates a stand-in and hands on its items: an iterator, where there are so many that they are counted; else the stand-in.
  Ref counted_items(PyObject* stand_in);
  /// Empty at the end, with the value of StopIteration in `result`: what a generator returned.
  Ref next_of(PyObject* iterator, Ref* result = nullptr);
  /// Throws StopIteration at the end, as it was raised.
  Ref next_or_stop(PyObject* iterator);
  /// As C code that makes room for them first: it asks how many they are, once it has the iterator.
  std::vector<Ref> items_to_keep(PyObject* iterable);
  /// Asks a class of the program's for `__len__`, else `__length_hint__`, and drops what it says. What these raise is raised.
  void ask_for_length(PyObject* iterable);
  /// `at_most`: takes no more of them.
  std::vector<Ref> items_of(PyObject* iterable, std::size_t at_most = std::numeric_limits<std::size_t>::max());
  /// As Python asks where it has words of its own for what is none.
  static bool may_be_iterated(PyObject* object) { return Py_TYPE(object)->tp_iter != nullptr || PySequence_Check(object); }
  void op_for_iter(Frame& f, const Instruction& i);

 private:
  Ref advance(PyObject* iterator);
  Ref iterator_of_array(PyObject* stand_in);
  bool has_more_items(PyObject* stand_in, std::size_t most);

  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
  const CaptureOptions& options_;
};

/// For C code that takes all items at once: what a view of an OrderedDict with keys that vary gives, which would look them up by what they hash to; anything else
/// as it is.
Ref items_to_hand_on(Heap& heap, PyObject* iterable);

}  // namespace tenon::python
