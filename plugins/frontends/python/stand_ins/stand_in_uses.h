// Where the uses of stand-ins go: what their types need of whoever records them.
#pragma once

#include <string_view>

#include "python/objects/ref.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/float_tape.h"

namespace tenon::python {

/// Takes the uses of the stand-ins of this thread while it lives; one that is made in the meantime goes first. All but the answers that are
/// said to be empty throw GraphBreak for what cannot be recorded, or PythonError with the library's own exception set.
class StandInUses {
 public:
  StandInUses();
  virtual ~StandInUses();
  StandInUses(const StandInUses&) = delete;
  StandInUses& operator=(const StandInUses&) = delete;

  /// Throws GraphBreak when there is none: a stand-in has escaped its capture.
  static StandInUses& active();

  /// A call of a function, method or ufunc with a stand-in among its arguments; `kwargs` is a dict or null.
  virtual Ref call(PyObject* callable, PyObject* args, PyObject* kwargs) = 0;
  /// The same of a ufunc that stands for an operator.
  virtual Ref call_operator(PyObject* ufunc, PyObject* args) = 0;
  /// The type that the program must see.
  virtual PyTypeObject* apparent_type(PyObject* stand_in) = 0;

  /// Python's number for an array of one element, where it is known before the graph runs; empty where it is not.
  virtual Ref known_number(PyObject* stand_in) = 0;

  /// Arithmetic of floats that vary, of which one at least is a stand-in.
  virtual Ref scalar_arithmetic(FloatTape::Op op, PyObject* a, PyObject* b) = 0;
  /// Arithmetic of plain numbers and symbolic ints, in floats; nothing where it must be done with their values.
  virtual Ref float_arithmetic(FloatTape::Op op, PyObject* a, PyObject* b) = 0;
  virtual Ref scalar_magnitude(PyObject* a) = 0;
  /// The outcome of a comparison (Py_LT to Py_GE); of numbers that come from arguments alone, guarded.
  virtual bool scalar_comparison(int operation, PyObject* a, PyObject* b) = 0;
  /// The int that `function` (floor, ceil, trunc, …) makes of such a number.
  virtual Ref whole_number(PyObject* number, std::string_view function) = 0;
  virtual Ref rounded(PyObject* number, PyObject* digits) = 0;
  /// Breaks where the value itself is needed: the graph ends before it.
  [[noreturn]] virtual void need_scalar(const ScalarValue& scalar, const char* use) = 0;

  /// The str that a function makes of arguments among which are such stand-ins; empty where they must be known.
  virtual Ref late_text(PyObject* function, PyObject* arguments) = 0;
  [[noreturn]] virtual void need_text(PyObject* text, const char* use) = 0;

 private:
  StandInUses* outer_;
};

}  // namespace tenon::python
