// What the program has changed of containers that are older than the call, and what they were before: guards speak of that state.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "python/objects/ref.h"

namespace tenon::python {

/// One container that was written.
struct Change {
  Ref original;              // a copy from before the first write: dict (in its order), tuple of the items of any other
  Ref inserted;              // an OrderedDict whose keys were moved: a copy in the order in which they came
  Ref written;               // dict: the keys that were stored or deleted since (a set)
  std::unordered_set<Py_ssize_t> positions;  // list: items that were replaced
  bool all_written = false;  // dict: cleared; list, deque: positions have moved; set: always
  bool guarded = false;      // all of `original` has been guarded
  bool ends_in_code = false; // dict excepted: at the end of an item of `original` code may run

  Py_ssize_t size() const;
  bool wrote(PyObject* key) const;
};

/// The written containers of one capture, by address (the heap keeps older objects alive).
class Changes {
 public:
  Change* find(PyObject* container) {
    const auto found = all_.find(container);
    return found == all_.end() ? nullptr : &found->second;
  }
  /// Copies the container if this is its first write. `fresh`: whether it was.
  Change& before_write(PyObject* container, bool* fresh);

 private:
  std::unordered_map<PyObject*, Change> all_;
};

/// Gives a container the contents again that a Change kept. Clears any exception that this meets.
void restore(PyObject* container, const Ref& original, const Ref& inserted);

/// Whether a set filled with these items in their order gives them in that order: not after collisions and removals.
bool keeps_order_of_set(PyObject* items);

}  // namespace tenon::python
