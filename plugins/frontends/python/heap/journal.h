// The journal: what the program does to objects that are older than the call, in its order, done again after the graph of every call.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "python/objects/ref.h"

namespace tenon::python {

class Snapshot;

enum class WriteKind : std::uint8_t {
  dict_set,       // (dict, key, value), past any override
  dict_delete,    // (dict, key)
  attribute_set,  // (owner, value); `detail` is the name; past any `__setattr__` of a class statement
  attribute_delete,
  cell_set,       // (cell, value)
  cell_clear,     // (cell)
  call,           // the C function `detail` with the operands as arguments
  advance,        // (iterator); `detail` says how often
};

/// One operation. `Operand` is an object while the capture lasts, then the number of a template's node.
template <class Operand>
struct Write {
  WriteKind kind;
  Ref detail;
  std::vector<Operand> operands;
};

/// Operations as a template's nodes.
class Replay {
 public:
  bool empty() const { return writes_.empty(); }
  void add(Write<std::uint32_t> write) { writes_.push_back(std::move(write)); }
  /// Does them, in order, on the objects that ResultTemplate::build gave. Throws PythonError where one raises.
  void run(const std::vector<Ref>& built) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  std::vector<Write<std::uint32_t>> writes_;
};

/// The operations of one capture. Operands that C code copies from (the items of an `extend`) must be tuples made at that moment: what an
/// object holds at the end of the call is not what it held then.
class Journal {
 public:
  bool empty() const { return writes_.empty(); }
  std::size_t size() const { return writes_.size(); }
  void add(WriteKind kind, std::vector<Ref> operands, Ref detail = {});
  /// One more step of an iterator.
  void add_advance(PyObject* iterator);
  /// How many of its references are to the object.
  Py_ssize_t references_to(PyObject* object) const;
  /// Adds all operands to the snapshot. Breaks the graph when one cannot be built again.
  Replay write(Snapshot& snapshot) const;

 private:
  /// The operations without what is overwritten before anybody can look: a module whose parameters are swapped for a call.
  std::vector<Write<Ref>> last_values() const;

  std::vector<Write<Ref>> writes_;
  std::unordered_map<PyObject*, Py_ssize_t> references_;
};

/// object.__setattr__ and __delattr__ (without a value), or those of the type for classes and modules. Throws PythonError.
void set_attribute_past_override(PyObject* owner, PyObject* name, PyObject* value);

}  // namespace tenon::python
