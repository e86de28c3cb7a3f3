// What C code would read or call of its arguments behind the evaluator's back.
#include <fmt/format.h>

#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// What a later call finds in such an object cannot be compared with what this one found.
void require_guardable(Heap& heap, PyObject* value, const TypeTraits& traits) {
  if (traits.hidden && heap.source_of(value)) throw GraphBreak(fmt::format("C code reads a {} that is older than the call", Py_TYPE(value)->tp_name));
}

}  // namespace

void Evaluator::require_plain(PyObject* value, int depth) {
  static const std::vector<PyObject*> methods = [] {
    const Names& n = names();
    std::vector<PyObject*> made = {n.__eq__, n.__hash__, n.__lt__, n.__iter__, n.__len__, n.__getitem__, n.__next__, n.__bool__, n.__index__, n.__int__, n.__float__, n.__add__, n.__radd__, n.__contains__, n.__repr__, n.__str__,
                                   n.__format__, n.__abs__, n.__round__, n.__trunc__, n.__floor__, n.__ceil__, n.__neg__, n.__pos__, n.__invert__, n.__bytes__, n.__reversed__, n.__divmod__, n.__pow__, n.__rpow__};
    for (const char* name : {"__length_hint__", "__complex__", "__rdivmod__", "__dir__", "__fspath__"}) made.push_back(checked(PyUnicode_InternFromString(name)).release());
    return made;
  }();
  require_no_python_methods(value, methods, depth);
}

/// Such a function asks its arguments for whatever it may use, by methods of the class and by attributes of the object itself.
void Evaluator::require_no_hooks(PyObject* value, int depth) {
  constexpr int kDeepest = 4;
  const TypeTraits& traits = heap_.traits(value);
  if (traits.atom || traits.role != Recorder::Role::other) return;
  const bool of_program = PyType_Check(value) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(value), Py_TPFLAGS_HEAPTYPE) && !recorder_.is_own_class(value);
  if (PyFunction_Check(value)) throw GraphBreak("a library's function is given a function, of which it may ask anything");
  if (traits.identity && !of_program) return;
  const bool has_attributes = traits.python_class && (traits.container == Container::none || (!traits.exact && compat::instance_dict(value) != nullptr));
  if (of_program || has_attributes) throw GraphBreak(fmt::format("a library's function is given a {}", of_program ? reinterpret_cast<PyTypeObject*>(value)->tp_name : Py_TYPE(value)->tp_name));
  require_no_python_methods(value, recorder_.hooks(), kDeepest);
  if (depth >= kDeepest) return;
  if (traits.container == Container::list || traits.container == Container::tuple) {
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(value); ++at) require_no_hooks(PySequence_Fast_GET_ITEM(value, at), depth + 1);
  } else if (traits.container == Container::dict) {
    PyObject *key, *item;
    for (Py_ssize_t position = 0; PyDict_Next(value, &position, &key, &item);) require_no_hooks(item, depth + 1);
  }
}

void Evaluator::require_readable(PyObject* value, int depth) { require_no_python_methods(value, {}, depth); }

void Evaluator::require_no_python_methods(PyObject* value, std::span<PyObject* const> method_names, int depth) {
  const TypeTraits& traits = heap_.traits(value);
  if (traits.atom || traits.identity || traits.role != Recorder::Role::other) return;
  if (traits.python_class) heap_.guard_special_methods(Py_TYPE(value));
  require_guardable(heap_, value, traits);
  if (traits.python_class && !PyExceptionInstance_Check(value)) {
    for (PyObject* name : method_names) {
      if (traits.container != Container::none && (name == names().__repr__ || name == names().__str__)) continue;
      PyObject* method = compat::type_lookup(Py_TYPE(value), name);
      if (method != nullptr && method != Py_None && (PyFunction_Check(method) || is_python_function(method)))
        throw GraphBreak(fmt::format("C code would call {}.{}", Py_TYPE(value)->tp_name, PyUnicode_AsUTF8(name)));
    }
  }
  if (depth >= 4) return;
  if (traits.container == Container::list || traits.container == Container::tuple)
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(value); ++at) require_no_python_methods(PySequence_Fast_GET_ITEM(value, at), method_names, depth + 1);
  if (traits.container == Container::dict) {
    Py_ssize_t position = 0;
    PyObject *key, *item;
    while (PyDict_Next(value, &position, &key, &item)) require_no_python_methods(item, method_names, depth + 1);
  }
}

}  // namespace tenon::python
