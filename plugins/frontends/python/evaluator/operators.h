// Operators, comparison, truth and length.
#pragma once

#include <optional>

#include "python/guards/recorder.h"
#include "python/heap/heap.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks attributes, calls, equality, hidden_calls, texts.
class Operators {
 public:
  Operators(Evaluator& core, Heap& heap, Recorder& recorder) : core_(core), heap_(heap), recorder_(recorder) {}

  bool truth(PyObject* value);
  Ref beside_tensor(PyObject* operand, PyObject* other);
  Ref binary(int operation, PyObject* left, PyObject* right);
  Ref compare(int operation, PyObject* left, PyObject* right);
  bool is_same(Ref left, Ref right);
  Py_ssize_t length(PyObject* value);
  void op_unary(Frame& f, const Instruction& i);
  void op_is(Frame& f, const Instruction& i);

 private:
  /// Breaks when an operator of C would read or change an older object of a type that is not known.
  Ref joined_with_nothing(int operation, PyObject* left, PyObject* right);
  void require_known_operands(std::initializer_list<PyObject*> operands);
  bool truth_from(PyObject* given);
  std::optional<Ref> operator_in_place_with_number(PyObject* left, PyObject* right, PyObject* name);
  std::optional<Ref> operator_with_number(PyObject* left, PyObject* right, PyObject* name, PyObject* reflected);
  std::optional<Ref> compare_in_c(int operation, PyObject* left, PyObject* right);
  void require_no_elements(PyObject* stand_in, PyObject* other);
  std::optional<Ref> python_operator(PyObject* left, PyObject* right, PyObject* name, PyObject* reflected, bool* tried);
  /// Whether it is a C function bound to a tensor or a stand-in: which of the two, depends on where the program got it.
  bool is_method_of_tensor(PyObject* object);

  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
};

}  // namespace tenon::python
