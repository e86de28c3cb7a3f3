#include "python/heap/finalizers.h"

#include <fmt/format.h>

#include "python/objects/graph_break.h"
#include "python/objects/ref.h"

namespace tenon::python {
namespace {

constexpr int kDeepestLook = 4;  // objects within each other that are looked into
constexpr int kMostLookedAt = 200;
constexpr Py_ssize_t kReferencesOfAPart = 2;  // of what an object alone holds: its own, and that of a capture which has looked at it

bool has_finalizer(PyObject* object) {
  if (Py_TYPE(object)->tp_finalize == nullptr) return false;
  if (!PyGen_CheckExact(object)) return true;
  return checked(PyObject_GetAttrString(object, "gi_suspended")).is(Py_True);  // no other one has anything to run
}

bool has_weak_references(PyObject* object) {
  return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) && *reinterpret_cast<PyObject**>(PyObject_GET_WEAKREFS_LISTPTR(object)) != nullptr;
}

/// What the program holds by definitions, not by values. Functions of other kinds than Python's (compiled, cached) are method descriptors.
bool is_class_or_code(PyObject* object) {
  return PyType_Check(object) || PyModule_Check(object) || PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_METHOD_DESCRIPTOR) || PyCFunction_Check(object) ||
         PyCode_Check(object) || PyFrame_Check(object);
}

struct Search {
  bool ends_now;  // the object where the search began goes, with what nothing else holds
  int depth = 0, left = kMostLookedAt;
  bool found = false;

  static int visit(PyObject* object, void* search) { return static_cast<Search*>(search)->look_at(object); }

  int look_at(PyObject* object) {
    if (is_class_or_code(object) || (ends_now && depth > 0 && Py_REFCNT(object) > kReferencesOfAPart)) return 0;
    if (has_finalizer(object) || (ends_now && has_weak_references(object))) return found = true;
    if (depth == kDeepestLook || left-- <= 0 || !PyObject_IS_GC(object) || Py_TYPE(object)->tp_traverse == nullptr) return 0;
    ++depth;
    const int stop = Py_TYPE(object)->tp_traverse(object, visit, this);
    --depth;
    return stop;
  }
};

}  // namespace

bool may_end_in_code(PyObject* object) {
  Search search{false};
  search.look_at(object);
  return search.found;
}

bool end_runs_code(PyObject* object) {
  Search search{true};
  search.look_at(object);
  return search.found;
}

void require_quiet_end(PyObject* object) {
  if (object != nullptr && may_end_in_code(object)) throw GraphBreak(fmt::format("a {} is let go, and code may run at its end", Py_TYPE(object)->tp_name), kFinalizerHint);
}

}  // namespace tenon::python
