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
    const std::vector<ResultTemplate::Node>& nodes = segment.objects.nodes;
    std::vector<bool> drawn(built.size());  // and parts of subscripts that are made of such
    for (std::uint32_t node = 0; node < built.size(); ++node) {
      const ResultTemplate::Kind kind = nodes[node].kind;
      if (kind == ResultTemplate::Kind::output) drawn[node] = is_number(built[node].get());
      if (kind == ResultTemplate::Kind::tuple || kind == ResultTemplate::Kind::slice)
        drawn[node] = std::ranges::any_of(nodes[node].children, [&](std::uint32_t child) { return drawn[child]; });
      if (drawn[node]) take(built[node].get());
    }
  }
  void take(const PyObject* object) {
    constexpr std::size_t kMost = 64;
    if (!object || objects_.size() >= kMost) return;
    const bool may_hold = PyTuple_CheckExact(object) || PyList_CheckExact(object) || PyDict_CheckExact(object) || PySlice_Check(object);
    if (may_hold || is_number(object)) objects_.push_back(object);
  }
  bool holds(const PyObject* object) const { return object && std::ranges::find(objects_, object) != objects_.end(); }

 private:
  static bool is_number(const PyObject* object) { return PyFloat_CheckExact(object) || PyLong_CheckExact(object); }

  // Addresses. A small int is one object wherever it comes from, and what has ended may leave its place to another: too many are found, at the cost
  // of symbols.
  std::vector<const PyObject*> objects_;
};

}  // namespace tenon::python
