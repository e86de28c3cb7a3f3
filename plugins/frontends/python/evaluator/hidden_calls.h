// What C code would read or call of its arguments behind the evaluator's back.
#pragma once

#include <span>

#include "python/guards/recorder.h"
#include "python/heap/heap.h"

namespace tenon::python {

class Evaluator;

/// Asks iteration.
class HiddenCalls {
 public:
  HiddenCalls(Evaluator& core, Heap& heap, Recorder& recorder) : core_(core), heap_(heap), recorder_(recorder) {}

  /// Whether it is an older list or tuple of a few items, among them a number.
  bool holds_older_numbers(PyObject* value) const;
  /// Breaks when C code would run Python methods of this object behind the evaluator's back.
  void require_no_python_methods(PyObject* value, std::span<PyObject* const> method_names, int depth = 0);
  void require_plain(PyObject* value, int depth = 0);
  /// The same of an argument of a library's function.
  void require_no_hooks(PyObject* value, int depth = 0);
  /// Breaks when C code would read, of an older object or what it holds, what no guard looks at.
  void require_readable(PyObject* value, int depth = 0);
  /// What C code that compares, prints or otherwise asks the elements must be given instead of `value`: no real tensor is in it.
  /// `iterated`: it only takes the items, one by one. Breaks where nothing can stand for it.
  Ref for_elements(PyObject* value, bool iterated = false);
  /// Whether a symbolic int is the object or, at any depth, in its items.
  bool holds_number(PyObject* object);
  /// A list or tuple that an operation takes whole, with the numbers read one by one that are in it, or in older ones inside of it.
  Ref with_items_read(PyObject* value);
  /// An older list or tuple of a few numbers that C code is going to read, as one of the numbers as the program reads them; others as they are.
  Ref with_numbers_read(PyObject* value);

 private:
  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
};

}  // namespace tenon::python
