// `_tenon.SymbolicScalar`: stands for a Python number that the graph knows only when it runs: a float argument that varies, or a number
// born of a tensor (`x.max().item()`).
#pragma once

#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "python/heap/ref.h"

namespace tenon::python {

/// Weak in type promotion, as Python's numbers are.
struct ScalarValue {
  ir::ValueId value;               // 0-d: float64, or int64 for an int
  bool integral = false;
  std::vector<std::string> roots;  // the varying floats that it was computed from
  bool of_data = false;            // it depends on a tensor's elements
};

/// As an operand of a tensor operation it is recorded; so is float64 arithmetic on floats. Any other use ends the graph there, or, where it
/// comes from arguments alone, makes those constants in another capture.
Ref make_symbolic_scalar(ScalarValue value);

bool is_symbolic_scalar(PyObject* object);
/// Whether it is a C function of Python's module math, or min or max.
bool is_function_of_floats(PyObject* callable);
const ScalarValue& scalar_of(PyObject* symbolic_scalar);

PyTypeObject* symbolic_scalar_type();

}  // namespace tenon::python
