#include "python/heap/last_references.h"

#include <algorithm>

#include "python/heap/finalizers.h"
#include "python/heap/heap.h"

namespace tenon::python {
namespace {

constexpr Py_ssize_t kMostReferences = 8;  // one that has more is held by others

}  // namespace

void LastReferences::watch(PyObject* const* values, std::size_t count) {
  for (std::size_t at = 0; at < count; ++at) {
    PyObject* object = values[at];
    if (object == nullptr || Py_REFCNT(object) > kMostReferences || std::find(values, values + at, object) != values + at) continue;
    const auto of_frames = static_cast<Py_ssize_t>(std::count(values + at, values + count, object));
    if (Py_REFCNT(object) > of_frames) continue;
    const bool ends_in_code = end_runs_code(object);
    any_ends_in_code_ |= ends_in_code;
    watched_.push_back({object, of_frames, ends_in_code});
  }
}

bool LastReferences::ends_in_code_now(Watched& watched, std::size_t writes) {
  if (watched.ends_in_code) return true;
  if (watched.quiet_until_write == writes) return false;
  if (may_end_in_code(watched.object)) return true;
  watched.quiet_until_write = writes;
  return false;
}

bool LastReferences::is_gone(const Watched& watched, Heap& heap) { return Py_REFCNT(watched.object) <= watched.of_frames + heap.references_to(watched.object); }

bool LastReferences::any_gone(Heap& heap) const {
  return std::ranges::any_of(watched_, [&](const Watched& each) { return is_gone(each, heap); });
}

PyObject* LastReferences::gone(Heap& heap) {
  for (Watched& each : watched_)
    if (is_gone(each, heap) && ends_in_code_now(each, heap.journal().size())) return each.object;
  return nullptr;
}

}  // namespace tenon::python
