// Items and lengths of lists, tuples and deques, and what is guarded for them.
#include "python/guards/object_checks.h"
#include "python/heap/heap.h"

namespace tenon::python {

Ref Heap::sequence_item(PyObject* sequence, Py_ssize_t index) {
  SourceId source = source_of(sequence);
  Change* change = source ? changes_.find(sequence) : nullptr;
  if (finds_written(change != nullptr)) {
    if (change->all_written) guard_original(sequence);
    if (change->all_written || index >= change->size() || change->positions.count(index)) source = {};
  }
  if (PyTuple_Check(sequence)) {
    PyObject* item = PyTuple_GET_ITEM(sequence, index);
    return source ? enter(sources().item(SourceKind::tuple_item, source, index), item) : adopt(Ref::borrow(item));
  }
  if (PyList_Check(sequence)) {
    PyObject* item = PyList_GET_ITEM(sequence, index);
    return source ? enter(sources().item(SourceKind::list_item, source, index), item) : adopt(Ref::borrow(item));
  }
  Ref item = checked(checks::sequence_item(sequence, index));
  return source ? enter(sources().item(SourceKind::sequence_item, source, index), item.get()) : adopt(std::move(item));
}

Ref Heap::chosen_item(PyObject* sequence, PyObject* number) {
  const SourceId source = source_of(sequence);
  if (!source || exposing_ || guards_.are_read_again() || changes_.find(sequence)) return {};
  auto place = recorder_.place_of(number);
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(sequence);
  if (!place || place->now < -size || place->now >= size) return {};
  PyObject* item = PySequence_Fast_GET_ITEM(sequence, place->now < 0 ? place->now + size : place->now);
  if (!recorder_.may_be_chosen(item)) return {};
  return enter(sources().chosen_item(source, std::move(place->chosen)), item);
}

Ref Heap::list_item(PyObject* list, Py_ssize_t index) {
  const Py_ssize_t from_start = index < 0 ? PyList_GET_SIZE(list) + index : index;
  const SourceId source = source_of(list);
  if (!source) return sequence_item(list, from_start);
  Change* change = changes_.find(list);
  finds_written(change != nullptr);
  const Py_ssize_t appended = change ? PyList_GET_SIZE(list) - change->size() : 0;
  const bool moved = change && (change->all_written || !change->positions.empty());
  if (moved || (index >= 0 && change && index >= change->size())) {
    length(list);
    return sequence_item(list, from_start);
  }
  PyObject* item = PyList_GET_ITEM(list, from_start);
  if (index < 0 && index + appended >= 0) return adopt(Ref::borrow(item));
  return enter(sources().item(SourceKind::list_item, source, index < 0 ? index + appended : index), item);
}

void Heap::guard_length(PyObject* container, SourceId source, Py_ssize_t length) {
  if (PyList_Check(container) && recorder_.length_wears_out(source, length, guards_)) throw GraphBreak("a list is read whose length keeps varying", "index it from its end");
  guards_.add_length(source, length);
}

Ref Heap::varying_length(PyObject* container) {
  const SourceId source = source_of(container);
  const bool countable = PyList_CheckExact(container) || PyDict_CheckExact(container) || PyAnySet_CheckExact(container);
  const Change* change = source ? changes_.find(container) : nullptr;
  if (!source || !countable || exposing_ || guards_.are_read_again() || (change && !grew_by_numbers(container, *change))) return {};
  const Py_ssize_t now = checks::length_of(container), size = change ? change->size() : now;
  Ref length = guards_.has_length(source, size) ? Ref() : recorder_.length_at(source, size, guards_);
  return length && now != size ? checked(PyNumber_Add(length.get(), checked(PyLong_FromSsize_t(now - size)).get())) : std::move(length);
}

/// Whether the program has put nothing into an older dict, and taken nothing from it, but under numbers that vary: of these is guarded whether they were there.
bool Heap::grew_by_numbers(PyObject* dict, const Change& change) {
  if (!PyDict_CheckExact(dict) || change.all_written) return false;
  Ref written = checked(PySequence_List(change.written.get()));
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(written.get()); ++at)
    if (!is_number(PyList_GET_ITEM(written.get(), at))) return false;
  return true;
}

Py_ssize_t Heap::length(PyObject* container) {
  const Py_ssize_t size = checks::length_of(container);
  if (size < 0) checked(PyObject_Size(container));  // which says why
  const SourceId source = source_of(container);
  Change* change = source ? changes_.find(container) : nullptr;
  if (finds_written(change != nullptr) && (PyDict_Check(container) || change->all_written)) guard_original(container);
  else if (source) guard_length(container, source, change ? change->size() : size);
  return size;
}

}  // namespace tenon::python
