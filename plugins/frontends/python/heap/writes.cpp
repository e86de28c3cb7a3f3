// The half of the heap that changes objects: for real while the capture lasts, into the journal, and back again.
#include <fmt/format.h>

#include <ranges>

#include "python/compat/object_layout.h"
#include "python/heap/finalizers.h"
#include "python/heap/heap.h"
#include "python/objects/dict_access.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

[[noreturn]] void raise_missing_attribute(PyObject* owner, PyObject* name) {
  PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", Py_TYPE(owner)->tp_name, name);
  throw PythonError();
}

/// `__bases__`, `__name__` and others are part of the class itself, whose metaclass has descriptors for them.
void require_attribute_of_its_own(PyObject* type, PyObject* name) {
  PyObject* found = compat::type_lookup(Py_TYPE(type), name);
  if (found != nullptr && Py_TYPE(found)->tp_descr_set != nullptr) throw GraphBreak(fmt::format("{} of a class is changed", name_text(name)));
}

/// Runs a step of the rollback, which nothing may stop.
template <class Step>
void undo_step(PyObject* object, Step step) {
  try {
    step();
  } catch (const std::exception&) {
    PyErr_WriteUnraisable(object);
  }
}

}  // namespace

void Heap::require_in_branch(PyObject* object, const char* what) const {
  for (const Branch& branch : branches_ | std::views::reverse) {
    if (branch.born.count(object)) return;
    if (branch.wrote == nullptr)
      throw GraphBreak(fmt::format("{} does {} of a {} that is older than it", branch.name, what, Py_TYPE(object)->tp_name), kReturnHint);
    *branch.wrote = true;
  }
}

void Heap::require_no_branch(const char* what) const {
  for (const Branch& branch : branches_)
    if (branch.wrote == nullptr) throw GraphBreak(fmt::format("{} in {}", what, branch.name));
}

PyObject* Heap::known_at(SourceId source) const {
  const auto found = known_at_.find(source.value);
  return found == known_at_.end() ? nullptr : found->second;
}

// A later call must not write what is read here under another name. One guard holds all apart, as there are far more pairs.
void Heap::note_written(PyObject* object) {
  if (types_.of(object).role != Recorder::Role::other || !written_types_.insert(Py_TYPE(object)).second) return;
  for (const auto& [other, known] : known_)
    if (Py_TYPE(other) == Py_TYPE(object)) guards_.add_distinct(known.source);
}

bool Heap::is_older(PyObject* object, const char* what) {
  require_in_branch(object, what);
  if (source_of(object)) return true;
  if (is_born(object)) return false;
  throw GraphBreak(fmt::format("{} of a {} of unknown origin", what, Py_TYPE(object)->tp_name));
}

void Heap::require_writable(PyObject* object, const char* what) {
  require_in_branch(object, what);
  if (is_born(object) && !source_of(object)) return;
  throw GraphBreak(fmt::format("{} of a {} that is older than the call", what, Py_TYPE(object)->tp_name),
                   kReturnHint);
}

void Heap::rollback() {
  const HashesLoosely loosely(recorder_);
  while (!undo_.empty()) {
    auto undo = std::move(undo_.back());
    undo_.pop_back();
    undo();
  }
}

Change& Heap::before_change(PyObject* container, bool reads) {
  exposed_.clear();  // what C code reads of it later is more than was guarded
  bool fresh = false;
  Change& change = changes_.before_write(container, &fresh);
  if (fresh) {
    note_written(container);
    if (const Source& place = sources()[source_of(container)]; place.kind == SourceKind::instance_dict)
      if (PyObject* owner = known_at(place.parent)) note_written(owner);
    on_rollback([keep = Ref::borrow(container), original = change.original, inserted = change.inserted] { restore(keep.get(), original, inserted); });
  }
  if (reads) guard_original(container);
  return change;
}

void Heap::guard_original(PyObject* container) {
  const Exposing exposing(*this);
  Change& change = *changes_.find(container);
  if (std::exchange(change.guarded, true)) return;
  const SourceId source = source_of(container);
  PyObject* original = change.original.get();
  if (PyDict_Check(container)) {
    guard_keys(source, original);
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(original, &position, &key, &value))
      if (!change.wrote(key)) enter(sources().keyed(SourceKind::dict_item, source, key), value);
  } else if (PyAnySet_Check(container)) {
    guard_items_of_set(source, original);
  } else {
    const SourceKind kind = PyList_Check(container) ? SourceKind::list_item : SourceKind::sequence_item;
    guard_length(container, source, change.size());
    for (Py_ssize_t at = 0; at < change.size(); ++at)
      if (!change.positions.count(at)) enter(sources().item(kind, source, at), PyTuple_GET_ITEM(original, at));
  }
}

void Heap::store_attribute(PyObject* owner, PyObject* name, PyObject* value) {
  if (!is_older(owner, "assignment to an attribute")) {
    if (PyType_Check(owner) && name == names().__bases__) require_attribute_of_its_own(owner, name);  // the metaclass may be asked for the order
    set_attribute_past_override(owner, name, value);
    return;
  }
  if (PyType_Check(owner)) {
    store_attribute_of_class(owner, name, value);
  } else if (PyObject* found = compat::type_lookup(Py_TYPE(owner), name); found != nullptr && Py_TYPE(found)->tp_descr_set != nullptr) {
    note_written(owner);
    store_slot(owner, found, value);
  } else {
    PyObject* dict = attributes_of(owner);
    if (dict == nullptr || (value == nullptr && !dict_contains(dict, name))) raise_missing_attribute(owner, name);
    require_quiet_end(PyDict_GetItemWithError(dict, name));
    Change& change = before_change(dict, false);
    set_attribute_past_override(owner, name, value);
    checked(PySet_Add(change.written.get(), name));
  }
  if (value) journal_.add(WriteKind::attribute_set, {Ref::borrow(owner), Ref::borrow(value)}, Ref::borrow(name));
  else journal_.add(WriteKind::attribute_delete, {Ref::borrow(owner)}, Ref::borrow(name));
}

Ref Heap::gradient_of(PyObject* stand_in) const {
  const auto found = gradient_slots_.find(stand_in);
  return found == gradient_slots_.end() ? Ref() : gradients_[found->second].second;
}

void Heap::store_gradient(PyObject* stand_in, PyObject* value) {
  static PyObject* const name = checked(PyUnicode_InternFromString("grad")).release();
  PyObject* real = real_of(stand_in);
  if (real != nullptr) is_older(real, "assignment to an attribute");
  const auto [slot, first] = gradient_slots_.try_emplace(stand_in, gradients_.size());
  if (first && real != nullptr && value == Py_None && !read_gradients_.contains(stand_in) && !recorder_.may_end_early())
    dropped_gradients_.push_back({source_of(real), sources().keyed(SourceKind::attribute, source_of(real), name)});
  if (first) gradients_.emplace_back(Ref::borrow(stand_in), Ref::borrow(value));
  else gradients_[slot->second].second = Ref::borrow(value);
}

void Heap::journal_gradients() {
  static PyObject* const name = checked(PyUnicode_InternFromString("grad")).release();
  for (const auto& [stand_in, value] : gradients_)
    if (real_of(stand_in.get()) != nullptr) journal_.add(WriteKind::attribute_set, {stand_in, value}, Ref::borrow(name));
  journal_asked_inputs();
}

Ref Heap::hooks_of(PyObject* stand_in, bool after) const {
  const auto found = hooks_.find({stand_in, after});
  return found == hooks_.end() ? Ref() : found->second;
}

void Heap::store_hooks(PyObject* stand_in, bool after, PyObject* name, PyObject* hooks) {
  PyObject* real = real_of(stand_in);
  if (!PyDict_Check(hooks)) throw GraphBreak("the dict of a tensor's hooks is assigned", kHookHint);
  if (real != nullptr) is_older(real, "assignment to an attribute");
  Ref& held = hooks_[{stand_in, after}];
  if (held) hooks_.erase({held.get(), after});
  held = hooks_[{hooks, after}] = Ref::borrow(hooks);
  if (real != nullptr) journal_.add(WriteKind::attribute_set, {Ref::borrow(stand_in), Ref::borrow(hooks)}, Ref::borrow(name));
}

/// Whether older tensors require a gradient, where the program has changed that: after all that was computed has its history.
void Heap::journal_asked_inputs() {
  static PyObject *const requires_grad = checked(PyUnicode_InternFromString("requires_grad")).release(), *const is_leaf = checked(PyUnicode_InternFromString("is_leaf")).release();
  for (const auto& [stand_in, before, now] : recorder_.asked_inputs()) {
    is_older(real_of(stand_in), "assignment to an attribute");
    if (before) enter(sources().keyed(SourceKind::attribute, source_of(real_of(stand_in)), is_leaf), Py_True);
    if (now != before) journal_.add(WriteKind::attribute_set, {Ref::borrow(stand_in), Ref::borrow(now ? Py_True : Py_False)}, Ref::borrow(requires_grad));
  }
}

void Heap::store_slot(PyObject* owner, PyObject* slot, PyObject* value) {
  if (Py_TYPE(slot) != &PyMemberDescr_Type) throw GraphBreak(fmt::format("assignment to an attribute of a {} through a descriptor in C", Py_TYPE(owner)->tp_name));
  Ref before = Ref::steal(Py_TYPE(slot)->tp_descr_get(slot, owner, reinterpret_cast<PyObject*>(Py_TYPE(owner))));
  PyErr_Clear();
  if (value == nullptr && !before) throw GraphBreak("an attribute that is not there is deleted");
  require_quiet_end(before.get());
  exposed_.clear();
  checked(Py_TYPE(slot)->tp_descr_set(slot, owner, value));
  attributes_.insert({owner, slot});
  on_rollback([keep = Ref::borrow(owner), slot, before] {
    undo_step(keep.get(), [&] { checked(Py_TYPE(slot)->tp_descr_set(slot, keep.get(), before.get())); });
  });
}

void Heap::store_attribute_of_class(PyObject* type, PyObject* name, PyObject* value) {
  require_attribute_of_its_own(type, name);
  PyObject* found = PyDict_GetItemWithError(compat::type_dict(reinterpret_cast<PyTypeObject*>(type)), name);
  Ref before = Ref::borrow(found);
  if (value == nullptr && !before) raise_missing_attribute(type, name);
  require_quiet_end(before.get());
  if (!wrote_attribute(type, name)) type_attribute(reinterpret_cast<PyTypeObject*>(type), name);  // descriptors and `__set_name__` aside, it must be as it was
  set_attribute_past_override(type, name, value);
  attributes_.insert({type, name});
  on_rollback([keep = Ref::borrow(type), key = Ref::borrow(name), before] {
    undo_step(keep.get(), [&] { set_attribute_past_override(keep.get(), key.get(), before.get()); });
  });
}

void Heap::store_cell(PyObject* cell, PyObject* value) {
  const bool older = is_older(cell, "assignment to a variable of an enclosing function");
  Ref before = Ref::borrow(PyCell_GET(cell));
  if (older) require_quiet_end(before.get());
  checked(PyCell_Set(cell, value));
  if (!older) return;
  note_written(cell);
  attributes_.insert({cell, nullptr});
  on_rollback([keep = Ref::borrow(cell), before] { PyCell_Set(keep.get(), before.get()); });
  if (value) journal_.add(WriteKind::cell_set, {Ref::borrow(cell), Ref::borrow(value)});
  else journal_.add(WriteKind::cell_clear, {Ref::borrow(cell)});
}

bool Heap::wrote_object(PyObject* object) {
  PyObject* dict = compat::instance_dict(object);
  if (wrote_container(object) || (dict != nullptr && wrote_container(dict))) return true;
  return std::ranges::any_of(attributes_, [&](const auto& written) { return written.first == object; });
}

bool Heap::wrote_along_bases(PyTypeObject* type, PyObject* name) const {
  if (attributes_.empty()) return false;
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(type->tp_mro); ++at)
    if (wrote_attribute(PyTuple_GET_ITEM(type->tp_mro, at), name)) return true;
  return false;
}

}  // namespace tenon::python
