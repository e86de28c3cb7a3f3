#include "python/heap/held_by_contexts.h"

#include <unordered_set>

namespace tenon::python {
namespace {

class HeldSearch {
 public:
  explicit HeldSearch(Heap& heap) : heap_(heap) {}

  void hold(PyObject* object) {
    seen_.insert(object);
    found.objects.push_back(Ref::borrow(object));
  }

  void visit(PyObject* object) {
    const TypeTraits& traits = heap_.traits(object);
    if (traits.role == Recorder::Role::stand_in) found.tensors.push_back(object);
    if (traits.atom || traits.role != Recorder::Role::other || heap_.source_of(object)) return;
    if (PyType_Check(object) || PyModule_Check(object) || (traits.identity && !heap_.is_born(object))) return;
    if (!seen_.insert(object).second) return;
    if (PyFunction_Check(object)) return visit_function(object);
    if (traits.container != Container::tuple) found.objects.push_back(Ref::borrow(object));
    if (const traverseproc traverse = Py_TYPE(object)->tp_traverse) traverse(object, visit_part, this);
  }

  HeldByContext found;

 private:
  static int visit_part(PyObject* object, void* search) {
    static_cast<HeldSearch*>(search)->visit(object);
    return 0;
  }

  /// Its globals are older.
  void visit_function(PyObject* function) {
    for (PyObject* part : {PyFunction_GetClosure(function), PyFunction_GetDefaults(function), PyFunction_GetKwDefaults(function)})
      if (part) visit(part);
  }

  Heap& heap_;
  std::unordered_set<PyObject*> seen_;
};

}  // namespace

HeldByContext held_by_context(Heap& heap, PyObject* context, std::span<PyObject* const> attributes) {
  HeldSearch search(heap);
  search.hold(context);
  for (PyObject* attribute : attributes) search.visit(attribute);
  return std::move(search.found);
}

}  // namespace tenon::python
