#include "python/evaluator/hidden_calls.h"

#include <algorithm>

#include <fmt/format.h>

#include "python/compat/object_layout.h"
#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"
#include "python/objects/sequences.h"

namespace tenon::python {
namespace {

/// What a later call finds in such an object cannot be compared with what this one found.
void require_guardable(Heap& heap, PyObject* value, const TypeTraits& traits) {
  if (traits.hidden && heap.source_of(value)) throw GraphBreak(fmt::format("C code reads a {} that is older than the call", Py_TYPE(value)->tp_name), kCodeInCHint);
}

/// Whether it is an older list or tuple of a few items, each of which may vary by itself.
bool is_short_and_older(const Heap& heap, PyObject* object) {
  constexpr Py_ssize_t kMost = 16;
  return (PyTuple_CheckExact(object) || PyList_CheckExact(object)) && heap.source_of(object) && PySequence_Fast_GET_SIZE(object) <= kMost;
}

std::span<PyObject*> items_within(PyObject* sequence) { return {PySequence_Fast_ITEMS(sequence), static_cast<std::size_t>(PySequence_Fast_GET_SIZE(sequence))}; }

bool may_vary(PyObject* item) { return PyLong_CheckExact(item) || PyFloat_CheckExact(item); }

/// Whether an older list or tuple holds a few numbers and nothing else, as sizes and factors do.
bool is_older_numbers(const Heap& heap, PyObject* object) {
  return is_short_and_older(heap, object) && PySequence_Fast_GET_SIZE(object) > 0 && std::ranges::all_of(items_within(object), may_vary);
}

}  // namespace

void HiddenCalls::require_plain(PyObject* value, int depth) {
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
void HiddenCalls::require_no_hooks(PyObject* value, int depth) {
  constexpr int kDeepest = 4;
  const TypeTraits& traits = heap_.traits(value);
  if (traits.atom || traits.role != Recorder::Role::other) return;
  const bool of_program = PyType_Check(value) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(value), Py_TPFLAGS_HEAPTYPE) && !recorder_.is_own_class(value);
  if (PyFunction_Check(value)) throw GraphBreak("a library's function is given a function, of which it may ask anything", kCodeInCHint);
  if (traits.identity && !of_program) return;
  const bool has_attributes = traits.python_class && (traits.container == Container::none || (!traits.exact && compat::instance_dict(value) != nullptr));
  if (of_program || has_attributes) throw GraphBreak(fmt::format("a library's function is given a {}", of_program ? reinterpret_cast<PyTypeObject*>(value)->tp_name : Py_TYPE(value)->tp_name), kCodeInCHint);
  require_no_python_methods(value, recorder_.hooks(), kDeepest);
  if (depth >= kDeepest) return;
  if (traits.container == Container::list || traits.container == Container::tuple) {
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(value); ++at) require_no_hooks(PySequence_Fast_GET_ITEM(value, at), depth + 1);
  } else if (traits.container == Container::dict) {
    PyObject *key, *item;
    for (Py_ssize_t position = 0; PyDict_Next(value, &position, &key, &item);) require_no_hooks(item, depth + 1);
  }
}

void HiddenCalls::require_readable(PyObject* value, int depth) { require_no_python_methods(value, {}, depth); }

void HiddenCalls::require_no_python_methods(PyObject* value, std::span<PyObject* const> method_names, int depth) {
  const TypeTraits& traits = heap_.traits(value);
  if (traits.atom || traits.identity || traits.role != Recorder::Role::other) return;
  if (traits.python_class) heap_.guard_special_methods(Py_TYPE(value));
  require_guardable(heap_, value, traits);
  if (traits.python_class && !PyExceptionInstance_Check(value)) {
    for (PyObject* name : method_names) {
      if (traits.container != Container::none && (name == names().__repr__ || name == names().__str__)) continue;
      PyObject* method = compat::type_lookup(Py_TYPE(value), name);
      if (method != nullptr && method != Py_None && (PyFunction_Check(method) || is_python_function(method)))
        throw GraphBreak(fmt::format("C code would call {}.{}", Py_TYPE(value)->tp_name, PyUnicode_AsUTF8(name)), kCodeInCHint);
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

Ref HiddenCalls::for_elements(PyObject* value, bool iterated) {
  heap_.expose(value);
  Ref seen = heap_.substitute(value);
  if (heap_.traits(seen.get()).role != Recorder::Role::other || !heap_.holds_tensor(seen.get())) return seen;
  if (iterated) return iterator_over_elements(core_, core_.iteration().iterator_of(seen.get()));
  throw GraphBreak(fmt::format("C code reads the tensors that a {} holds", Py_TYPE(value)->tp_name), kCodeInCHint);
}

bool HiddenCalls::holds_number(PyObject* object) {
  const auto has_items = [](PyObject* item) { return PySlice_Check(item) || PyTuple_Check(item) || PyList_Check(item); };
  if (!has_items(object)) return heap_.is_number(object);
  std::vector<PyObject*> open = {object};
  std::unordered_set<PyObject*> seen;  // a list may hold itself
  bool found = false;
  const auto look_at = [&](PyObject* item) {
    found |= heap_.is_number(item);
    if (has_items(item)) open.push_back(item);
  };
  while (!found && !open.empty()) {
    PyObject* holder = open.back();
    open.pop_back();
    if (!seen.insert(holder).second) continue;
    if (PySlice_Check(holder)) {
      auto* slice = reinterpret_cast<PySliceObject*>(holder);
      for (PyObject* part : {slice->start, slice->stop, slice->step}) look_at(part);
    } else {
      for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(holder); ++at) look_at(PySequence_Fast_GET_ITEM(holder, at));
    }
  }
  return found;
}

bool HiddenCalls::holds_older_numbers(PyObject* value) const { return is_short_and_older(heap_, value) && std::ranges::any_of(items_within(value), may_vary); }

Ref HiddenCalls::with_numbers_read(PyObject* value) {
  if (!holds_older_numbers(value)) return Ref::borrow(value);
  std::vector<Ref> items = core_.iteration().items_of(value);
  return heap_.born(PyTuple_CheckExact(value) ? tuple_of(std::move(items)) : list_of(std::move(items)));
}

Ref HiddenCalls::with_items_read(PyObject* value) {
  const bool older = is_older_numbers(heap_, value);
  const bool born = !older && (PyTuple_CheckExact(value) || PyList_CheckExact(value)) && !heap_.source_of(value);
  std::vector<Ref> items;
  bool any = older;
  if (older) items = core_.iteration().items_of(value);
  for (Py_ssize_t at = 0; born && at < PySequence_Fast_GET_SIZE(value); ++at) {
    PyObject* item = PySequence_Fast_GET_ITEM(value, at);
    const bool reads = is_older_numbers(heap_, item);
    items.push_back(reads ? with_items_read(item) : Ref::borrow(item));
    any |= reads;
  }
  if (!any) return Ref::borrow(value);
  return PyTuple_CheckExact(value) ? tuple_of(std::move(items)) : list_of(std::move(items));
}

}  // namespace tenon::python
