// Texts of objects: str(), repr(), format(), and what is made of numbers that vary.
#pragma once

#include <initializer_list>

#include "python/guards/recorder.h"
#include "python/heap/heap.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks hidden_calls.
class Texts {
 public:
  Texts(Evaluator& core, Heap& heap, Recorder& recorder) : core_(core), heap_(heap), recorder_(recorder) {}

  Ref to_string(PyObject* value, PyObject* method_name);
  /// The text that a function of a module makes of numbers which vary; empty where there are none, or it cannot be made later.
  Ref late(const char* module, const char* function, std::initializer_list<PyObject*> arguments);
  /// format(value, spec), where no `spec` is an empty one.
  Ref formatted(PyObject* value, PyObject* spec);
  void op_format(Frame& f, const Instruction& i);

 private:
  bool is_formatted_by_library(PyObject* tensor);
  Ref of_container(PyObject* value);

  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
};

}  // namespace tenon::python
