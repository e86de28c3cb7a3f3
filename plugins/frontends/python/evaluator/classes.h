// Classes: called, and made by the program.
#pragma once

#include <optional>

#include "python/guards/recorder.h"
#include "python/heap/heap.h"
#include "python/segments/arguments.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks calls, functions, loops.
class Classes {
 public:
  Classes(Evaluator& core, Heap& heap, Recorder& recorder) : core_(core), heap_(heap), recorder_(recorder) {}

  std::optional<Ref> construct(PyTypeObject* type, Arguments arguments, Completion completion);
  /// type.__call__, past a `__call__` of the metaclass.
  std::optional<Ref> construct_plain(PyTypeObject* type, Arguments arguments, Completion completion);
  /// `type.__new__` with its arguments.
  Ref make_class(const Arguments& arguments);
  /// Makes a class as type.__new__(metaclass, name, bases, namespace, **keywords) does; the hooks that are written in Python are evaluated.
  /// Creation in C runs C code only: what the evaluator must see is kept from it, and run after it in the same order.
  Ref make_class(PyTypeObject* metaclass, PyObject* name, PyObject* bases, PyObject* space, const Arguments& keywords);
  /// Runs the body of a class statement in its namespace, a dict, and gives the cell of `__class__`, or None.
  Ref run_class_body(PyObject* body, Ref space);

 private:
  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
};

/// Raises TypeError, as Python does, where an `__init__` gave something.
void require_nothing_given(const Ref& by_init);

/// The most derived metaclass of the bases and of the one that is given, which may be none.
PyTypeObject* metaclass_of(PyTypeObject* given, PyObject* bases);

}  // namespace tenon::python
