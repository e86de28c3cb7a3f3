// What C code would read or call of its arguments behind the evaluator's back.
#include <fmt/format.h>

#include "python/evaluator/evaluator.h"
#include "python/heap/names.h"

namespace tenon::python {
namespace {

/// What a later call finds in such an object cannot be compared with what this one found.
void require_guardable(Heap& heap, PyObject* value, const TypeTraits& traits) {
  if (traits.hidden && heap.source_of(value)) throw GraphBreak(fmt::format("C code reads a {} that is older than the call", Py_TYPE(value)->tp_name));
}

}  // namespace

void Evaluator::require_plain(PyObject* value, int depth) {
  const Names& n = names();
  PyObject* const methods[] = {n.__eq__, n.__hash__, n.__lt__, n.__iter__, n.__len__, n.__getitem__, n.__next__, n.__bool__, n.__index__, n.__int__, n.__float__, n.__add__, n.__radd__, n.__contains__, n.__repr__, n.__str__, n.__format__};
  require_no_python_methods(value, methods, depth);
}

void Evaluator::require_no_hooks(PyObject* value) { require_no_python_methods(value, recorder_.hooks()); }

void Evaluator::require_readable(PyObject* value, int depth) { require_no_python_methods(value, {}, depth); }

void Evaluator::require_no_python_methods(PyObject* value, std::span<PyObject* const> method_names, int depth) {
  const TypeTraits& traits = heap_.traits(value);
  if (traits.atom || traits.identity || traits.role != Recorder::Role::other) return;
  require_guardable(heap_, value, traits);
  if (traits.python_class && !PyExceptionInstance_Check(value)) {
    for (PyObject* name : method_names) {
      if (traits.container != Container::none && (name == names().__repr__ || name == names().__str__)) continue;
      PyObject* method = heap_.type_attribute(Py_TYPE(value), name);
      if (is_python_function(method) || (method != nullptr && is_python_descriptor(method)))
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
