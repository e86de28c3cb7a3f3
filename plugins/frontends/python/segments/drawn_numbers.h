// Numbers that one call has found in elements of tensors, and containers of some: other ones in the next call.
#pragma once

#include <algorithm>
#include <vector>

#include "python/segments/segment.h"

namespace tenon::python {

/// Needs the GIL. Keeps nothing alive.
class DrawnNumbers {
 public:
  /// Takes those that a segment's graph has computed.
  void take(const Segment& segment, const std::vector<Ref>& built) {
    for (std::size_t node = 0; node < built.size(); ++node)
      if (segment.objects.nodes[node].kind == ResultTemplate::Kind::output) take(built[node].get());
  }
  void take(const PyObject* object) {
    constexpr std::size_t kMost = 64;
    if (!object || objects_.size() >= kMost) return;
    const bool may_vary = PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyTuple_CheckExact(object) || PyList_CheckExact(object) || PyDict_CheckExact(object);
    if (may_vary) objects_.push_back(object);
  }
  bool holds(const PyObject* object) const { return object && std::ranges::find(objects_, object) != objects_.end(); }

 private:
  // Addresses. A small int is one object wherever it comes from, and what has ended may leave its place to another: too many are found, at the cost
  // of symbols.
  std::vector<const PyObject*> objects_;
};

}  // namespace tenon::python
