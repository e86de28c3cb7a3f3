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
    of_frames_.push_back({object, of_frames});
    const bool ends_in_code = end_runs_code(object);
    any |= ends_in_code;
    watched_.push_back({object, of_frames, ends_in_code});
  }
  if (!any) watched_.clear();
}

bool LastReferences::ends_in_code_now(Watched& watched, std::size_t writes) {
  if (watched.ends_in_code) return true;
  if (watched.quiet_until_write == writes) return false;
  if (may_end_in_code(watched.object)) return true;
  watched.quiet_until_write = writes;
  return false;
}

bool LastReferences::any_gone(Heap& heap) const {
  return std::ranges::any_of(of_frames_, [&](const OfFrames& each) { return Py_REFCNT(each.object) <= each.references + heap.references_to(each.object); });
}

PyObject* LastReferences::gone(Heap& heap) {
  for (Watched& each : watched_)
    if (Py_REFCNT(each.object) <= each.of_frames + heap.references_to(each.object) && ends_in_code_now(each, heap.journal().size())) return each.object;
  return nullptr;
}

}  // namespace tenon::python
