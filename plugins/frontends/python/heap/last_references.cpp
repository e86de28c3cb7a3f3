#include "python/heap/last_references.h"

#include <algorithm>

#include "python/heap/finalizers.h"
#include "python/heap/heap.h"

namespace tenon::python {
namespace {

constexpr Py_ssize_t kMostReferences = 8;  // one that has more is held by others

bool is_watched_by_weak_references(PyObject* object) {
  return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) && *reinterpret_cast<PyObject**>(PyObject_GET_WEAKREFS_LISTPTR(object)) != nullptr;
}

}  // namespace

void LastReferences::watch(PyObject* const* values, std::size_t count) {
  for (std::size_t at = 0; at < count; ++at) {
    PyObject* object = values[at];
    if (object == nullptr || Py_REFCNT(object) > kMostReferences || std::find(values, values + at, object) != values + at) continue;
    const auto of_frames = static_cast<Py_ssize_t>(std::count(values + at, values + count, object));
    if (Py_REFCNT(object) > of_frames) continue;
    if (is_watched_by_weak_references(object) || end_runs_code(object)) watched_.push_back({object, of_frames});
  }
}

PyObject* LastReferences::gone(Heap& heap) const {
  for (const Watched& each : watched_)
    if (Py_REFCNT(each.object) <= each.of_frames + heap.references_to(each.object)) return each.object;
  return nullptr;
}

}  // namespace tenon::python
