// Python functions that the evaluator does not look into: those it answers itself, and those that end a graph.
#pragma once

#include <optional>

#include "python/heap/ref.h"

namespace tenon::python {

class Evaluator;
struct Arguments;

struct FunctionRule {
  const char* reason = nullptr;  // the graph breaks here, with this reason
  const char* hint = "";
  bool answers_is_compiling = false;  // the call gives CaptureOptions::is_compiling
  std::optional<Ref> (*handler)(Evaluator&, Arguments) = nullptr;
};

/// The rule for a Python function, or null for one that is evaluated like any other.
const FunctionRule* rule_of_function(PyObject* function);

/// Why functions of the module with these globals are not evaluated, or null.
const char* module_that_breaks(PyObject* globals);

}  // namespace tenon::python
