#include "python/heap/changes.h"

#include "python/guards/object_checks.h"
#include "python/heap/finalizers.h"
#include "python/heap/type_traits.h"
#include "python/objects/dict_access.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

/// Puts the items of a dict, in the order in which their keys came, into another.
void store_all(PyObject* dict, PyObject* items) {
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(items, &position, &key, &value))
    if (PyDict_GetItemWithError(dict, key) != value) set_past_override(dict, key, value);
}

/// A dict with the items in the order in which their keys came.
Ref copy_as_inserted(PyObject* dict) {
  Ref copy = checked(PyDict_New());
  store_all(copy.get(), dict);
  return copy;
}

/// A dict with the same keys in the same order.
Ref copy_of_dict(PyObject* dict) {
  Ref copy = checked(PyDict_New()), items = items_past_override(dict);
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(items.get()); ++at) {
    PyObject* pair = PyList_GET_ITEM(items.get(), at);
    checked(PyDict_SetItem(copy.get(), PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)));
  }
  return copy;
}

bool same_order(PyObject* dict, PyObject* original) {
  Ref now = items_past_override(dict), then = items_past_override(original);
  if (PyList_GET_SIZE(now.get()) != PyList_GET_SIZE(then.get())) return false;
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(now.get()); ++at)
    if (PyTuple_GET_ITEM(PyList_GET_ITEM(now.get(), at), 0) != PyTuple_GET_ITEM(PyList_GET_ITEM(then.get(), at), 0)) return false;
  return true;
}

void restore_dict(PyObject* dict, PyObject* original, PyObject* inserted) {
  if (inserted) {
    clear_past_override(dict);
    store_all(dict, inserted);
    return move_to_order(dict, original);
  }
  // New keys go first: mostly the rest then stands in its old order, and shared keys of instances stay shared.
  Ref now = items_past_override(dict);
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(now.get()); ++at) {
    PyObject* key = PyTuple_GET_ITEM(PyList_GET_ITEM(now.get(), at), 0);
    if (checked(PyDict_Contains(original, key)) == 0) set_past_override(dict, key, nullptr);
  }
  if (!same_order(dict, original) || !keeps_order_of_insertion(dict)) clear_past_override(dict);
  store_all(dict, original);
}

void restore_items(PyObject* container, PyObject* original) {
  if (PyList_Check(container)) {
    checked(PyList_SetSlice(container, 0, PyList_GET_SIZE(container), original));
    return;
  }
  PyTypeObject* base = PyAnySet_Check(container) ? &PySet_Type : library_types().deque;
  checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(base), "clear", "O", container));
  checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(base), PyAnySet_Check(container) ? "update" : "extend", "OO", container, original));
}

}  // namespace

Py_ssize_t Change::size() const { return checks::length_of(original.get()); }

bool Change::wrote(PyObject* key) const { return all_written || (written && checked(PySet_Contains(written.get(), key)) != 0); }

Change& Changes::before_write(PyObject* container, bool* fresh) {
  auto [entry, first] = all_.try_emplace(container);
  *fresh = first;
  Change& change = entry->second;
  if (!first) return change;
  if (PyDict_Check(container)) {
    change.original = copy_of_dict(container);
    if (!keeps_order_of_insertion(container)) change.inserted = copy_as_inserted(container);
    change.written = checked(PySet_New(nullptr));
  } else if (PyAnySet_Check(container)) {
    change.original = checked(PySequence_Tuple(container));
    if (!keeps_order_of_set(change.original.get())) throw GraphBreak("a set is changed whose order could not be restored");
    change.all_written = true;
  } else {
    change.original = checked(PySequence_Tuple(container));
    change.all_written = !PyList_Check(container);
  }
  for (Py_ssize_t at = 0; PyTuple_Check(change.original.get()) && at < PyTuple_GET_SIZE(change.original.get()) && !change.ends_in_code; ++at)
    change.ends_in_code = may_end_in_code(PyTuple_GET_ITEM(change.original.get(), at));
  return change;
}

bool keeps_order_of_set(PyObject* items) {
  Ref set = checked(PySet_New(nullptr));
  for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(items); ++at) checked(PySet_Add(set.get(), PySequence_Fast_GET_ITEM(items, at)));
  Ref order = checked(PySequence_List(set.get()));
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(order.get()); ++at)
    if (PyList_GET_ITEM(order.get(), at) != PySequence_Fast_GET_ITEM(items, at)) return false;
  return true;
}

void restore(PyObject* container, const Ref& original, const Ref& inserted) {
  try {
    if (PyDict_Check(container)) restore_dict(container, original.get(), inserted.get());
    else restore_items(container, original.get());
  } catch (const std::exception&) {
    PyErr_WriteUnraisable(container);
  }
}

}  // namespace tenon::python
