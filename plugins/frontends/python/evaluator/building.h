// Containers: built, extended, unpacked, matched against patterns.
#pragma once

#include "python/guards/recorder.h"
#include "python/heap/heap.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks attributes, equality, hidden_calls, iteration, operators.
class Building {
 public:
  Building(Evaluator& core, Heap& heap, Recorder& recorder) : core_(core), heap_(heap), recorder_(recorder) {}

  void op_build(Frame& f, const Instruction& i);
  void op_extend(Frame& f, const Instruction& i);
  /// set.add() for a set of this capture. Where an item holds a number that varies, a second one is compared with it.
  void add_to_set(PyObject* set, PyObject* item);
  void op_unpack(Frame& f, const Instruction& i);
  void op_match(Frame& f, const Instruction& i);

 private:
  bool extend_older(const Instruction& i);
  /// Raises a TypeError with these words for the type.
  void require_iterable(PyObject* value, const char* complaint);
  Ref match_keys(PyObject* subject, PyObject* keys);
  Ref match_class(PyObject* subject, PyObject* type, int positional, PyObject* keyword_names);

  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
};

}  // namespace tenon::python
