// `_tenon.NumberStandIn`: stands for a Python number that is known only at the call: a float that varies, which is computed before the
// graph runs, or a number born of a tensor (`x.max().item()`), which the graph computes.
#pragma once

#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "python/objects/ref.h"
#include "python/symbols/float_tape.h"

namespace tenon::python {

/// Weak in type promotion, as Python's numbers are.
struct ScalarValue {
  ir::ValueId value;               // 0-d: float64, or int64 for an int; none for one of the tape
  bool integral = false;
  std::vector<std::string> roots;  // the varying numbers that it was computed from
  bool of_data = false;            // it depends on a tensor's elements
  std::optional<FloatTape::Position> step = {};  // of a float that is computed before the graph runs
};

/// As an operand of a tensor operation it is recorded; so is float64 arithmetic on floats. A comparison is guarded where the number comes from
/// arguments alone. Any other use ends the graph there, or makes those arguments constants in another capture.
Ref make_symbolic_scalar(ScalarValue value);

bool is_symbolic_scalar(PyObject* object);
/// Whether it is a C function of Python's module math, or min or max.
bool is_function_of_floats(PyObject* callable);
const ScalarValue& scalar_of(PyObject* symbolic_scalar);

PyTypeObject* symbolic_scalar_type();

}  // namespace tenon::python
