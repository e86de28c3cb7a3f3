#include "python/evaluator/equality.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/compat/object_layout.h"
#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/dict_access.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

constexpr int kDeepest = 8;

/// What is hashed by its address must be this very object at every call; so must a tensor, and the object of a bound C function.
void require_this_object(Heap& heap, PyObject* key) {
  PyObject* object = heap.is_stand_in(key) ? heap.real_of(key) : PyCFunction_Check(key) ? PyCFunction_GET_SELF(key) : Py_TYPE(key)->tp_hash == PyBaseObject_Type.tp_hash ? key : nullptr;
  if (object == nullptr) return;
  const SourceId source = heap.source_of(object);
  if (source && heap.sources()[source].kind != SourceKind::constant) heap.guards().add(GuardKind::identity, source, object);
}

}  // namespace

bool Equality::has_python_equality(PyObject* value, int depth) {
  const TypeTraits& traits = heap_.traits(value);
  if (traits.atom || traits.identity || traits.role != Recorder::Role::other || depth >= kDeepest) return false;
  if (traits.python_class && is_python_function(heap_.type_attribute(Py_TYPE(value), names().__eq__))) return true;
  if (traits.container == Container::list || traits.container == Container::tuple) {
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(value); ++at)
      if (has_python_equality(PySequence_Fast_GET_ITEM(value, at), depth + 1)) return true;
  } else if (traits.container == Container::dict) {
    Py_ssize_t position = 0;
    PyObject *key, *item;
    while (PyDict_Next(value, &position, &key, &item))
      if (has_python_equality(item, depth + 1)) return true;
  }
  return false;
}

bool Equality::has_python_hash(PyObject* value) {
  return heap_.traits(value).python_class && is_python_function(heap_.type_attribute(Py_TYPE(value), names().__hash__));
}

void Equality::prepare_hash(PyObject* key, int depth) {
  const TypeTraits& traits = heap_.traits(key);
  if (traits.atom) return;
  require_this_object(heap_, key);
  if (traits.identity || traits.role != Recorder::Role::other) return;
  if (Py_TYPE(key)->tp_hash != PyBaseObject_Type.tp_hash) core_.hidden_calls().require_readable(key);
  if (depth >= kDeepest) throw GraphBreak("a key nested too deeply");
  if (has_python_hash(key)) {
    const Heap::NoWrites twice(heap_, "a __hash__");
    heap_.plain_key(core_.call_now(heap_.type_attribute(Py_TYPE(key), names().__hash__), {key}).get());  // C code hashes no symbols
  }
  if (traits.container == Container::frozen_set || traits.container == Container::list) heap_.expose(key);
  if (traits.container == Container::tuple) {
    heap_.expose(key);
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(key); ++at) prepare_hash(PyTuple_GET_ITEM(key, at), depth + 1);
  }
}

/// Whether the `__eq__` of one of the keys is written in Python: it is asked of any key of the same hash.
bool Equality::has_python_keys(PyObject* container) {
  if (!heap_.source_of(container) || heap_.wrote_container(container)) return finds_python_key(container);
  const auto known = python_keys_.find(container);
  return known != python_keys_.end() ? known->second : (python_keys_[container] = finds_python_key(container));
}

bool Equality::finds_python_key(PyObject* container) {
  // Most keys are of built-in types, which a look at the type tells.
  const auto compares = [&](PyObject* key) { return (PyType_HasFeature(Py_TYPE(key), Py_TPFLAGS_HEAPTYPE) || PyTuple_Check(key)) && has_python_equality(key); };
  if (PyAnySet_Check(container)) {
    Ref iterator = checked(PySet_Type.tp_iter(container));
    while (Ref key = Ref::steal(PyIter_Next(iterator.get())))
      if (compares(key.get())) return true;
    return false;
  }
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(container, &position, &key, &value))
    if (compares(key)) return true;
  return false;
}

void Equality::prepare_key(PyObject* key, PyObject* container) {
  if (container != nullptr) heap_.tighten(container);
  prepare_hash(key);
  if (container == nullptr || !(PyDict_Check(container) || PyAnySet_Check(container))) return;
  const TypeTraits& traits = heap_.traits(key);
  const bool plain = traits.atom || traits.identity || traits.role != Recorder::Role::other;
  if (plain ? !has_python_keys(container) : (PyDict_Check(container) ? PyDict_GET_SIZE(container) : PySet_GET_SIZE(container)) == 0) return;
  // The guard on the lookup would hash and compare an object of this capture, as a later call left it.
  if (heap_.source_of(container) && heap_.is_born(key) && (has_python_hash(key) || (!PyTuple_CheckExact(key) && core_.hidden_calls().holds_number(key))))
    throw GraphBreak(fmt::format("a {} is looked up in a {} that is older than the call", Py_TYPE(key)->tp_name, Py_TYPE(container)->tp_name));
  const Py_hash_t hash = PyObject_Hash(key);
  if (hash == -1) throw_python_error();
  const bool compared = has_python_equality(key);
  for (const auto& [other, others] : compat::hashed_keys(container)) {
    if (other.is(key) || others != hash || !(compared || has_python_equality(other.get()))) continue;
    const Heap::NoWrites twice(heap_, "an __eq__");
    core_.operators().truth(core_.operators().compare(Py_EQ, other.get(), key).get());
  }
}

bool Equality::same_or_equal(PyObject* left, PyObject* right) {
  if (left == right) return true;
  heap_.found_different(left, right);
  return core_.operators().truth(core_.operators().compare(Py_EQ, left, right).get());
}

void Equality::tell_apart(PyObject* left, PyObject* right, int depth) {
  if (left == right || depth >= kDeepest || heap_.traits(left).atom || heap_.traits(right).atom) return;
  const Container a = heap_.traits(left).container, b = heap_.traits(right).container;
  if (a != b || a == Container::none) return heap_.found_different(left, right);
  if (a == Container::list || a == Container::tuple) {
    const Py_ssize_t both = std::min(PySequence_Fast_GET_SIZE(left), PySequence_Fast_GET_SIZE(right));
    for (Py_ssize_t at = 0; at < both; ++at) tell_apart(PySequence_Fast_GET_ITEM(left, at), PySequence_Fast_GET_ITEM(right, at), depth + 1);
  } else if (a == Container::dict) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(left, &position, &key, &value)) {
      if (has_python_equality(key)) continue;
      PyObject* other = PyDict_GetItemWithError(right, key);
      if (other == nullptr && PyErr_Occurred()) throw_python_error();
      if (other != nullptr) tell_apart(value, other, depth + 1);
    }
  }
}

std::optional<bool> Equality::equal_ints(PyObject* left, PyObject* right) {
  const auto is_sequence = [&](PyObject* object) { return PyTuple_CheckExact(object) || PyList_CheckExact(object); };
  if (Py_TYPE(left) != Py_TYPE(right) || !is_sequence(left) || PySequence_Fast_GET_SIZE(left) != PySequence_Fast_GET_SIZE(right)) return std::nullopt;
  const auto count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(left));
  const std::span<PyObject* const> x{PySequence_Fast_ITEMS(left), count}, y{PySequence_Fast_ITEMS(right), count};
  const auto is_int = [&](PyObject* item) { return PyLong_CheckExact(item) || heap_.is_number(item); };
  const auto varies = [&](PyObject* item) { return heap_.is_number(item); };
  if (!std::ranges::all_of(x, is_int) || !std::ranges::all_of(y, is_int) || (std::ranges::none_of(x, varies) && std::ranges::none_of(y, varies))) return std::nullopt;
  return core_.recorder().equal_ints(x, y);
}

void Equality::tell_items_apart(PyObject* items, PyObject* item) {
  const Container container = heap_.traits(items).container;
  if (heap_.traits(item).atom || (container != Container::list && container != Container::tuple && container != Container::deque && !PyDictValues_Check(items))) return;
  Ref all = checked(PySequence_List(items));
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(all.get()); ++at) tell_apart(PyList_GET_ITEM(all.get(), at), item);
}

std::optional<bool> Equality::equal_containers(PyObject* left, PyObject* right) {
  const TypeTraits &a = heap_.traits(left), &b = heap_.traits(right);
  if (!a.exact || !b.exact || a.container != b.container) return std::nullopt;
  if (a.container == Container::list || a.container == Container::tuple) {
    if (heap_.length(left) != heap_.length(right)) return false;
    // What compares two items may change the lists.
    Py_ssize_t at = 0;
    const auto ended = [&] { return at >= heap_.length(left) || at >= heap_.length(right); };
    while (!ended() && same_or_equal(heap_.sequence_item(left, at).get(), heap_.sequence_item(right, at).get())) ++at;
    return ended() && heap_.length(left) == heap_.length(right);
  }
  if (a.container != Container::dict) return std::nullopt;
  heap_.expose(left);
  heap_.expose(right);
  if (PyDict_GET_SIZE(left) != PyDict_GET_SIZE(right)) return false;
  Ref items = heap_.items_of(left);
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(items.get()); ++at) {
    PyObject* key = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), at), 0);
    prepare_key(key, right);
    Ref other = heap_.dict_item(right, key);
    if (!other || !same_or_equal(heap_.dict_item(left, key).get(), other.get())) return false;
  }
  return true;
}

bool Equality::contains_by_comparing(PyObject* iterable, PyObject* item) {
  const TypeTraits& traits = heap_.traits(iterable);
  if (traits.container == Container::list || traits.container == Container::tuple) {
    for (Py_ssize_t at = 0; at < heap_.length(iterable); ++at)
      if (same_or_equal(heap_.sequence_item(iterable, at).get(), item)) return true;
    return false;
  }
  Ref iterator = core_.iteration().iterator_of(iterable);
  while (Ref each = core_.iteration().next_of(iterator.get()))
    if (same_or_equal(each.get(), item)) return true;
  return false;
}

}  // namespace tenon::python
