// Raising, handling and `with`.
#pragma once

#include "python/compat/object_layout.h"
#include "python/heap/heap.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks attributes, calls, dropped.
class Exceptions {
 public:
  Exceptions(Evaluator& core, Heap& heap) : core_(core), heap_(heap) {}

  /// The exception that was being handled when the capture began, or null.
  PyObject* handled_at_start() const { return handled_at_start_.get(); }
  void op_exception(Frame& f, const Instruction& i);
  void op_raise(Frame& f, const Instruction& i);
  /// The traceback of an exception that was raised here. It can be handed on, not looked into: its frames are not the program's.
  Ref traceback_of(PyObject* exception);
  void op_before_with(Frame& f);

 private:
  void push_handled_exception();
  void require_born_here(PyObject* exception);

  Evaluator& core_;
  Heap& heap_;
  Ref handled_at_start_ = compat::handled_exception();
};

}  // namespace tenon::python
