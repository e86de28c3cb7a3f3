#include "python/evaluator/dropped_objects.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/heap/finalizers.h"

namespace tenon::python {

/// Whether the frames of an exception's traceback hold what runs code when it goes, as a generator does inside a `try`.
bool DroppedObjects::frames_hold_finalizers(PyObject* exception) const {
  const auto is_evaluated = [&](PyObject* code) { return std::ranges::any_of(frames_, [&](const auto& f) { return f->code->object.is(code); }); };
  Ref at = Ref::steal(PyException_GetTraceback(exception));
  if (!at || !PyTraceBack_Check(at.get())) return false;  // `with_traceback(None)` leaves None
  for (auto* traceback = reinterpret_cast<PyTracebackObject*>(at.get()); traceback != nullptr; traceback = traceback->tb_next) {
    const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(traceback->tb_frame)));
    if (is_evaluated(code.get())) continue;
    Ref locals = checked(PyFrame_GetLocals(traceback->tb_frame)), values = checked(PyMapping_Values(locals.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i)
      if (Py_TYPE(PyList_GET_ITEM(values.get(), i))->tp_finalize != nullptr) return true;
  }
  return false;
}

void DroppedObjects::require_no_finalizer(const Slot& dropped) {
  PyObject* object = dropped.object.get();
  if (object == nullptr) return;
  if (PyExceptionInstance_Check(object) && !heap_.is_born(object) && (frames_hold_finalizers(object) || end_runs_code(object)))
    throw GraphBreak(fmt::format("a {} is let go, and with it what has a finalizer", Py_TYPE(object)->tp_name), kFinalizerHint);
  if (Py_TYPE(object)->tp_finalize == nullptr) return;
  if (dropped.pending || heap_.source_of(object)) throw GraphBreak(fmt::format("a {}, which has a finalizer, is let go", Py_TYPE(object)->tp_name), kFinalizerHint);
}

void DroppedObjects::require_all_alive() {
  if (PyObject* gone = last_references_.gone(heap_)) throw GraphBreak(fmt::format("a {} is let go, and code may run at its end", Py_TYPE(gone)->tp_name), kFinalizerHint);
}

/// Likewise one to which a weak reference looks, from a frame that holds it for real: the last reference to it, if no one else held it at first, or what
/// held it was written.
void DroppedObjects::require_not_watched(const Slot& dropped) {
  PyObject* object = dropped.object.get();
  if (object == nullptr || !frames_.back()->kept || !PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) || PyType_Check(object) || PyModule_Check(object) || PyCFunction_Check(object)) return;
  const bool older = dropped.pending || heap_.source_of(object);
  const bool may_be_last = last_references_.are_of(object) || !heap_.journal().empty();
  if (older && may_be_last && *reinterpret_cast<PyObject**>(PyObject_GET_WEAKREFS_LISTPTR(object)) != nullptr)
    throw GraphBreak(fmt::format("a {} with weak references is let go", Py_TYPE(object)->tp_name), kWeakHint);
}

}  // namespace tenon::python
