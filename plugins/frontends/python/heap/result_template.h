// Templates: how the objects that a captured call made are built again on every later call.
#pragma once

#include <string>
#include <vector>

#include "python/guards/check_program.h"

namespace tenon::python {

/// What a call returns, as a tree (with shared nodes) over constants, values of sources, and graph outputs.
class ResultTemplate {
 public:
  enum class Kind : std::uint8_t {
    constant,  // an immutable object, shared by all calls
    source,    // an object that existed before the call
    output,    // a graph output
    list, tuple, dict, set, frozen_set, slice,
    tuple_subclass,  // named tuples, torch.return_types
    deque, ordered_dict, default_dict,
    instance,  // object.__new__ and its __dict__ and slots
      cell, function, method,
  };
  struct Node {
    Kind kind = Kind::constant;
    Ref object;             // constant; the type of an instance; the attribute names (tuple) of an instance
    std::uint32_t index = 0;  // slot in CheckProgram::values(), or number of the graph output
    std::vector<std::uint32_t> children;
    Ref names;              // instance: names of its attributes (tuple of str)
  };

  /// Builds the result. `values` are those of the CheckProgram, `outputs` the graph's outputs. Throws PythonError.
  Ref build(PyObject* const* values, PyObject* const* outputs) const;

  /// The sources that it reads, while slots are not known yet; `bind` then replaces them.
  std::vector<SourceId> sources;
  void bind(const CheckProgram& program);

  std::vector<Node> nodes;  // children come first; the last node is the result
};

}  // namespace tenon::python
