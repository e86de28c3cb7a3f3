// Items and slices: read, stored, deleted, looked for.
#pragma once

#include "python/heap/heap.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks attributes, equality, hidden_calls, operators.
class Items {
 public:
  Items(Evaluator& core, Heap& heap) : core_(core), heap_(heap) {}

  Ref load(PyObject* container, PyObject* key);
  void store(PyObject* container, PyObject* key, PyObject* value);
  bool contains(PyObject* container, PyObject* item);
  /// What C code would get by an `__index__` written in Python, of an object or of the parts of a slice; anything else as it is.
  Ref plain_index(PyObject* key);
  void op_slice(Frame& f, const Instruction& i);

 private:
  Ref slice_of_parts(PyObject* slice);
  Ref subscript_of_parts(PyObject* key);

  Evaluator& core_;
  Heap& heap_;
};

}  // namespace tenon::python
