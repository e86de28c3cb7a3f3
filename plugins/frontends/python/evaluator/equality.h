// `__eq__` and `__hash__` that are written in Python, which C code would run behind the evaluator's back.
#pragma once

#include <optional>
#include <unordered_map>

#include "python/heap/heap.h"

namespace tenon::python {

class Evaluator;

/// Asks hidden_calls, iteration, operators.
class Equality {
 public:
  Equality(Evaluator& core, Heap& heap) : core_(core), heap_(heap) {}

  /// Whether comparing the object, or what it holds, runs an `__eq__` written in Python.
  bool has_python_equality(PyObject* value, int depth = 0);
  bool has_python_hash(PyObject* value);
  /// Runs the object's `__hash__` here, where its reads are guarded; C code then runs it again and comes to the same.
  void prepare_hash(PyObject* key, int depth = 0);
  /// Must come before C code looks a key up (in a dict or set): runs what is written in Python of hashing and comparing it, under guard.
  void prepare_key(PyObject* key, PyObject* container = nullptr);
  bool same_or_equal(PyObject* left, PyObject* right);
  /// C code compares the two, and what has no `__eq__` by its address: objects that are two must be two at every call.
  void tell_apart(PyObject* left, PyObject* right, int depth = 0);
  /// Likewise each item of a sequence and the object that is looked for among them.
  void tell_items_apart(PyObject* items, PyObject* item);
  /// Whether two lists or tuples of ints, some of which vary, are equal, where that is one condition; empty where C code compares them item by item.
  std::optional<bool> equal_ints(PyObject* left, PyObject* right);
  /// Equality of lists, tuples and dicts that hold objects with an `__eq__` in Python, or older numbers, item by item. Empty when they are no such pair.
  std::optional<bool> equal_containers(PyObject* left, PyObject* right);
  bool contains_by_comparing(PyObject* iterable, PyObject* item);

 private:
  bool has_python_keys(PyObject* container);
  bool finds_python_key(PyObject* container);

  Evaluator& core_;
  Heap& heap_;
  std::unordered_map<PyObject*, bool> python_keys_;  // by older container that nothing has written: whether it has such keys
};

}  // namespace tenon::python
