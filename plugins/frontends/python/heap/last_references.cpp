#include "python/heap/last_references.h"

#include <algorithm>

#include "python/heap/finalizers.h"
#include "python/heap/heap.h"

namespace tenon::python {
namespace {

constexpr Py_ssize_t kMostReferences = 8;  // one that has more is held by others

}  // namespace

void LastReferences::watch(PyObject* const* values, std::size_t count) {
  bool any = false;
  for (std::size_t at = 0; at < count; ++at) {
    PyObject* object = values[at];
    if (object == nullptr || Py_REFCNT(object) > kMostReferences || std::find(values, values + at, object) != values + at) continue;
    const auto of_frames = static_cast<Py_ssize_t>(std::count(values + at, values + count, object));
    if (Py_REFCNT(object) > of_frames) continue;
    const bool ends_in_code = end_runs_code(object);
    any |= ends_in_code;
    watched_.push_back({object, of_frames, ends_in_code});
  }
  if (!any) watched_.clear();
}

PyObject* LastReferences::gone(Heap& heap) const {
  for (const Watched& each : watched_)
    if (Py_REFCNT(each.object) <= each.of_frames + heap.references_to(each.object) && (each.ends_in_code || may_end_in_code(each.object))) return each.object;
  return nullptr;
}

}  // namespace tenon::python
