// Templates: how the objects that a captured call made are built again on every later call.
#pragma once

#include <string>
#include <vector>

#include "python/guards/check_program.h"

namespace tenon::python {

/// Objects that belong together (a result, the slots of frames, the operands of a journal) as nodes over constants, values of sources and
/// graph outputs. One object is one node, so that identity is kept among all of them. Whoever needs an object keeps its node's number.
///
/// Nodes that can be part of a cycle (containers that change, instances, functions, cells) are made empty and filled when all nodes are
/// there: their children may come later. The children of all others come before them.
class ResultTemplate {
 public:
  enum class Kind : std::uint8_t {
    constant,  // an immutable object, shared by all calls
    source,    // an object that existed before the call
    output,    // a graph output
    // made whole
    tuple, tuple_subclass, frozen_set, slice, method,
    call,      // what `object` gives for the children as arguments: iterators, views, bound C functions
    iterator,  // over its child, `index` items on
    // made empty, filled later
    list, dict, set, deque, ordered_dict, default_dict, partial, cell, function, instance, exception,
  };
  struct Node {
    Kind kind = Kind::constant;
    Ref object;               // constant; callable of a call; class of everything that has one to name; (code, globals, qualified name) of a function
    std::uint32_t index = 0;  // source: slot in CheckProgram::values(); output: its number; iterator: items that were taken
    std::vector<std::uint32_t> children;    // items; keys and values in turn
    Ref detail;               // deque: maxlen; call: a state for `__setstate__`, or empty
    Ref names;                // names of the attributes (tuple of str), or empty
    std::vector<std::uint32_t> attributes;  // their values
    std::vector<std::uint32_t> entries;     // of a `__dict__` with keys that are no attributes: all its keys and values in turn
  };

  /// Builds every node: the object of node `i` is at `i`. `values` are those of the CheckProgram, `outputs` the graph's. Throws PythonError.
  std::vector<Ref> build(PyObject* const* values, PyObject* const* outputs) const;

  /// Moves iterators over lists that are older than the call to where they stand, once the journal has given the lists the items that they have passed:
  /// before that a list may be too short.
  void place_iterators(const std::vector<Ref>& built) const;

  /// Builds the object of one node, for those who need no other.
  Ref build_one(std::uint32_t node, PyObject* const* values, PyObject* const* outputs) const;

  /// The sources that it reads, while slots are not known yet; `bind` then replaces them.
  std::vector<SourceId> sources;
  void bind(const CheckProgram& program);

  /// Visits every object that is held, for the garbage collector.
  int traverse(visitproc visit, void* arg) const;

  std::vector<Node> nodes;
};

}  // namespace tenon::python
