// Functions of Python's module math, by name.
#pragma once

#include <string_view>

namespace tenon::python {

/// One of a float that a graph may compute, or the host.
struct MathFunction {
  std::string_view name;
  const char* op;  // of the graph
  double (*compute)(double);
};

/// Null for another one.
const MathFunction* math_function(std::string_view name);

/// Whether a call of it on floats that are known before the graph runs may be made then, by Python's own function.
bool computes_before_the_graph(std::string_view name);

}  // namespace tenon::python
