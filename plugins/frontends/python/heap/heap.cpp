#include "python/heap/heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "python/compat/object_layout.h"
#include "python/guards/special_methods.h"
#include "python/objects/dict_access.h"
#include "python/objects/iterators.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

constexpr int kDeepestExposed = 8;  // levels of nesting that `expose` follows

bool is_key_by_value(const TypeTraits& traits) { return traits.atom || traits.identity; }

/// Whether a bound C function belongs to a definition (module, type, a binding library's record) rather than to a value of the program.
bool is_definition(PyObject* self) {
  return self == nullptr || PyModule_Check(self) || PyType_Check(self) || PyCapsule_CheckExact(self) ||
         std::string_view(Py_TYPE(self)->tp_name).starts_with("pybind11");
}

}  // namespace

SourceId Heap::source_of(PyObject* object) const {
  const auto found = known_.find(object);
  return found == known_.end() ? SourceId{} : found->second.source;
}

void Heap::make_known(PyObject* object, SourceId source) {
  if (const auto hidden = hidden_.find(object); hidden != hidden_.end()) throw GraphBreak(hidden->second);
  const bool found = known_.try_emplace(object, Known{Ref::borrow(object), source, {}}).second;
  if (found) known_at_.emplace(source.value, object);
  if (found && written_types_.contains(Py_TYPE(object))) guards_.add_distinct(source);
}

/// A torch.Size is what its items are: each may vary.
Ref Heap::enter_sizes(SourceId source, PyObject* sizes) {
  const Py_ssize_t count = PyTuple_GET_SIZE(sizes);
  guards_.add(GuardKind::type_is, source, as_object(Py_TYPE(sizes)));
  guards_.add_length(source, count);
  Ref seen = checked(Py_TYPE(sizes)->tp_alloc(Py_TYPE(sizes), count));
  bool any = false;
  for (Py_ssize_t at = 0; at < count; ++at) {
    Ref item = enter(sources().item(SourceKind::tuple_item, source, at), PyTuple_GET_ITEM(sizes, at));
    any |= is_number(item.get());
    PyTuple_SET_ITEM(seen.get(), at, item.release());
  }
  return any ? std::move(seen) : Ref::borrow(sizes);
}

Ref Heap::enter(SourceId source, PyObject* object) {
  const TypeTraits& traits = types_.of(object);
  if (traits.role == Recorder::Role::stand_in) return Ref::borrow(object);
  if (traits.atom) {
    const bool may_vary = (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object)) && !exposing_ && !guards_.are_read_again() && sources()[source].kind != SourceKind::constant;
    if (may_vary)
      if (Ref number = recorder_.number(object, source, guards_)) return number;
    if (PyTuple_Check(object) && sources()[source].kind != SourceKind::constant) return enter_sizes(source, object);
    guards_.add(GuardKind::constant, source, object);
    return Ref::borrow(object);
  }
  if (const auto found = known_.find(object); found != known_.end()) return enter_known(source, found->second);
  if (traits.role != Recorder::Role::other) return enter_tensor(source, object);
  if (PyFunction_Check(object) && sources().from_argument(source)) {
    enter_function(source, object);
  } else if (Py_TYPE(object) == compat::method_wrapper_type() || (PyCFunction_Check(object) && !is_definition(PyCFunction_GET_SELF(object)))) {
    enter_bound_builtin(source, object);
  } else if (traits.identity) {
    guards_.add(GuardKind::identity, source, object);
    make_known(object, sources().constant(object));
    if (PyType_Check(object) && traits.python_class) guards_.add(GuardKind::type_is, sources().constant(object), as_object(Py_TYPE(object)));  // a metaclass may be replaced
  } else {
    if (holds_plain_value(Py_TYPE(object))) guards_.add(GuardKind::identity, source, object);
    else if (sources()[source].kind != SourceKind::constant) guards_.add(GuardKind::type_is, source, reinterpret_cast<PyObject*>(Py_TYPE(object)));
    make_known(object, source);
  }
  return Ref::borrow(object);
}

Ref Heap::enter_known(SourceId source, const Known& known) {
  if (!(source == known.source)) {
    if (sources()[known.source].kind == SourceKind::constant) guards_.add(GuardKind::identity, source, known.object.get());
    else if (sources()[source].kind == SourceKind::constant) guards_.add(GuardKind::identity, known.source, known.object.get());
    else guards_.add_same_object(source, known.source);
  }
  return known.stand_in ? known.stand_in : known.object;
}

/// What stands for a tensor has the special methods of the library's own class. Where the program has put others there, which anything that
/// is done to a tensor may call, there is no graph. Texts are asked for outside of graphs anyway.
void Heap::note_class_of_tensors(PyTypeObject* type) {
  if (!tensor_types_.insert(type).second || !types_.of(type).python_class) return;
  guard_special_methods(type);
  const Names& n = names();
  for (PyObject* name : special_method_names()) {
    if (name == n.__repr__ || name == n.__str__ || name == n.__format__ || name == n.__getattr__) continue;
    PyObject* found = compat::type_lookup(type, name);
    if (found != nullptr && !recorder_.is_own(found)) throw GraphBreak(fmt::format("{}.{} is the program's", type->tp_name, name_text(name)));
  }
}

Ref Heap::enter_tensor(SourceId source, PyObject* object) {
  Ref stand_in = recorder_.input(object, source, guards_);
  note_class_of_tensors(recorder_.apparent_type(stand_in.get()));
  inputs_.push_back(source);
  reals_[stand_in.get()] = object;
  known_.emplace(object, Known{Ref::borrow(object), source, stand_in});
  known_at_.emplace(source.value, object);
  return stand_in;
}

void Heap::enter_function(SourceId source, PyObject* object) {
  // A fresh lambda of the same code must hit: everything it holds is reached through its source.
  guards_.add(GuardKind::type_is, source, reinterpret_cast<PyObject*>(Py_TYPE(object)));
  make_known(object, source);
}

void Heap::enter_bound_builtin(SourceId source, PyObject* object) {
  const Exposing exposing(*this);  // C code reads the self
  guards_.add(GuardKind::type_is, source, reinterpret_cast<PyObject*>(Py_TYPE(object)));
  make_known(object, source);
  Ref self = checked(PyObject_GetAttr(object, names().__self__));
  enter(PyCFunction_Check(object) ? sources().part(SourceKind::method_self, source) : sources().keyed(SourceKind::attribute, source, names().__self__), self.get());
  Ref name = checked(PyObject_GetAttr(object, names().__name__));
  guards_.add(GuardKind::constant, sources().keyed(SourceKind::attribute, source, names().__name__), name.get());
}

Ref Heap::adopt(Ref value) {
  PyObject* object = value.get();
  const TypeTraits& traits = types_.of(object);
  if (traits.atom) return value;
  if (traits.role == Recorder::Role::stand_in) {
    if (made_.try_emplace(object, now).second) note_class_of_tensors(recorder_.apparent_type(object));
    return value;
  }
  if (traits.role == Recorder::Role::tensor) {
    const auto found = known_.find(object);
    if (found == known_.end()) throw GraphBreak(fmt::format("a {} of unknown origin", Py_TYPE(object)->tp_name), "return it from an operation, or pass it as an argument");
    return found->second.stand_in ? found->second.stand_in : found->second.object;
  }
  if (traits.role == Recorder::Role::scalar) {
    const auto found = known_.find(object);
    return found != known_.end() ? found->second.stand_in : value;
  }
  // C code makes no definitions, but it binds functions to values.
  const bool definition = traits.identity && !(PyCFunction_Check(object) && !is_definition(PyCFunction_GET_SELF(object)));
  if (known_.count(object) != 0 || definition) return value;
  // Held by others too, it may be older than this moment; else an older entry is that of another object at the same address.
  const auto before = born_.find(object);
  const bool known_birth = before != born_.end() && Py_REFCNT(object) > 1;
  if (!known_birth) note_birth(object);
  if (PyTuple_Check(object))  // what several results of one operation come in
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      if (is_stand_in(PyTuple_GET_ITEM(object, i))) made_.try_emplace(PyTuple_GET_ITEM(object, i), now);
  return value;
}

Ref key_held_by(Heap& heap, PyObject* dict, PyObject* key) {
  if (Ref varying = heap.loose_key(dict, key)) return varying;
  Ref plain = heap.plain_key(key);
  PyObject* real = heap.is_stand_in(plain.get()) ? heap.real_of(plain.get()) : nullptr;
  return real != nullptr && checked(PyDict_Contains(dict, real)) != 0 ? Ref::borrow(real) : std::move(plain);
}

Ref Heap::plain_key(PyObject* key) {
  if (is_number(key)) return recorder_.plain_number(key);
  if (!PyTuple_CheckExact(key) || source_of(key)) return Ref::borrow(key);
  Ref items = checked(PyTuple_New(PyTuple_GET_SIZE(key)));
  bool changed = false;
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(key); ++at) {
    Ref item = plain_key(PyTuple_GET_ITEM(key, at));
    changed |= !item.is(PyTuple_GET_ITEM(key, at));
    PyTuple_SET_ITEM(items.get(), at, item.release());
  }
  return changed ? born(items) : Ref::borrow(key);
}

Ref Heap::dict_item(PyObject* dict, PyObject* given) {
  if (!loose_key(dict, given))
    if (const auto found = item_of_older(dict, given)) return found->value ? enter(found->place, found->value.get()) : Ref();
  if (is_no_key(dict, given)) return {};
  const Ref plain = key_held_by(*this, dict, given);
  PyObject* key = plain.get();
  const HashesLoosely loosely(recorder_);
  PyObject* value = PyDict_GetItemWithError(dict, key);
  if (value == nullptr && PyErr_Occurred()) throw_python_error();
  const SourceId source = source_of(dict);
  const Change* change = source ? changes_.find(dict) : nullptr;
  if (!source || finds_written(change && change->wrote(key))) return value ? adopt(Ref::borrow(value)) : Ref();
  if (value == nullptr) {
    PyObject* real = is_stand_in(key) ? real_of(key) : nullptr;
    guards_.add(GuardKind::key_missing, source, real ? real : key);
    return {};
  }
  return enter(sources().keyed(SourceKind::dict_item, source, key), value);
}

bool Heap::dict_contains(PyObject* dict, PyObject* given) {
  if (!loose_key(dict, given))
    if (const auto found = item_of_older(dict, given)) return static_cast<bool>(found->value);
  if (is_no_key(dict, given)) return false;
  const Ref plain = key_held_by(*this, dict, given);
  PyObject* key = plain.get();
  const HashesLoosely loosely(recorder_);
  const bool present = checked(PyDict_Contains(dict, key)) != 0;
  const SourceId source = source_of(dict);
  const Change* change = source ? changes_.find(dict) : nullptr;
  if (source && !finds_written(change && change->wrote(key))) {
    PyObject* real = is_stand_in(key) ? real_of(key) : nullptr;
    guards_.add(present ? GuardKind::key_present : GuardKind::key_missing, source, real ? real : key);
  }
  return present;
}

PyObject* Heap::attributes_of(PyObject* object) {
  PyObject* dict = compat::instance_dict(object);
  if (dict == nullptr) return nullptr;
  const SourceId source = source_of(object);
  if (!source && !is_born(object) && types_.of(object).python_class && !types_.of(object).identity)
    throw GraphBreak(fmt::format("a {} of unknown origin", Py_TYPE(object)->tp_name));
  if (source) {
    const SourceId place = sources().part(SourceKind::instance_dict, source);
    if (const auto found = known_.find(dict); found != known_.end()) enter_known(place, found->second);  // objects may share one
    else make_known(dict, place);
  }
  return dict;
}

PyObject* Heap::type_attribute(PyTypeObject* type, PyObject* name) {
  PyObject* found = compat::type_lookup(type, name);
  // Built-in types cannot be changed; a class made in this capture is not there at the next call.
  const bool may_change = types_.of(type).python_class && !is_born(as_object(type)) && !wrote_along_bases(type, name);
  if (!may_change || varies_in_class(type, name, found)) return found;
  guards_.add_type_attribute(type, name, found);
  return found;
}

/// A number that a class counts: whoever reads its value enters it at its source.
bool Heap::varies_in_class(PyTypeObject* type, PyObject* name, PyObject* found) {
  const bool number = found != nullptr && (PyLong_CheckExact(found) || PyFloat_CheckExact(found));
  if (!number || exposing_ || guards_.are_read_again()) return false;
  return static_cast<bool>(recorder_.number(found, sources().keyed(SourceKind::type_attribute, sources().constant(as_object(type)), name), guards_));
}

void Heap::guard_special_methods(PyTypeObject* type) {
  if (!types_.of(type).python_class || is_born(as_object(type)) || !asked_types_.insert(type).second) return;
  guards_.add_special_methods(type, special_methods_of(type, [&](PyObject* name) { return wrote_along_bases(type, name); }));
}

void Heap::guard_lookup(PyTypeObject* type) {
  if (looked_up_.insert(type).second) type_attribute(type, names().__getattribute__);
}

void Heap::enter_class_dict(PyTypeObject* type) {
  PyObject* dict = compat::type_dict(type);
  if (is_born(as_object(type))) {
    note_birth(dict);
    return;
  }
  if (std::ranges::any_of(attributes_, [&](const auto& written) { return written.first == as_object(type); })) throw GraphBreak("the __dict__ of a class that has been changed is read");
  make_known(dict, sources().part(SourceKind::class_dict, sources().constant(as_object(type))));
}

void Heap::guard_bases(PyTypeObject* type) {
  if (types_.of(type).python_class && !is_born(as_object(type))) guards_.add_base_order(type);
}

Ref Heap::part(SourceKind kind, PyObject* owner, PyObject* value) {
  const SourceId source = source_of(owner);
  if (!source || (kind == SourceKind::cell_contents && wrote_cell(owner))) return adopt(Ref::borrow(value));
  return enter(sources().part(kind, source), value);
}

std::pair<Ref, SourceId> Heap::advance(PyObject* iterator) {
  // What it will give is looked up, and checked, before anything is written.
  if (walks_over(iterator, [&](PyObject* object) { return changes_.find(object) != nullptr; }))
    throw GraphBreak("an iterator that is older than the call is advanced after a change of what it walks over");
  auto [entry, first] = progress_.try_emplace(iterator);
  Progress& progress = entry->second;
  if (first) {
    note_written(iterator);
    progress.copy = copy_of_iterator(iterator);
  }
  if (!progress.copy) {
    progress_.erase(entry);
    throw GraphBreak(fmt::format("a {} that is older than the call is advanced", Py_TYPE(iterator)->tp_name));
  }
  const SourceId source = source_of(iterator);
  Ref item = Ref::steal(PyIter_Next(progress.copy.get()));
  if (!item && PyErr_Occurred()) throw_python_error();
  guards_.add_items_to_come(source, progress.taken, static_cast<bool>(item));
  journal_.add_advance(iterator);
  if (!item) return {};
  return {item, sources().item(SourceKind::upcoming, source, progress.taken++)};
}

void Heap::found_different(PyObject* left, PyObject* right) {
  const SourceId a = source_of(left), b = source_of(right);
  if (!a || !b || Py_TYPE(left) != Py_TYPE(right)) return;  // types are guarded
  const bool fixed = sources()[a].kind == SourceKind::constant && sources()[b].kind == SourceKind::constant;
  if (!fixed) guards_.add_different_object(a, b);
}

namespace {

/// The ends and the step of a slice, under guard as C code takes them.
void enter_parts_of_slice(Heap& heap, SourceId source, PyObject* slice) {
  for (const char* name : {"start", "stop", "step"}) {
    PyObject* descriptor = compat::type_lookup(&PySlice_Type, checked(PyUnicode_InternFromString(name)).get());
    Ref part = checked(PyObject_GetAttrString(slice, name));
    if (!heap.traits(part.get()).atom) throw GraphBreak(fmt::format("a slice that is older than the call holds a {}, and is read by C code", part.type()->tp_name));
    heap.enter(heap.sources().keyed(SourceKind::member, source, descriptor), part.get());
  }
}

/// The text of an exception is made of its arguments, unless its class has more to say.
Ref enter_arguments_of_exception(Heap& heap, SourceId source, PyObject* exception) {
  const auto text_of = [](PyObject* type) { return reinterpret_cast<PyTypeObject*>(type)->tp_str; };
  const reprfunc text = Py_TYPE(exception)->tp_str;
  if (text != text_of(PyExc_BaseException) && text != text_of(PyExc_KeyError)) throw GraphBreak("an exception with a text of its own, which is older than the call, is read by C code");
  Ref name = checked(PyUnicode_InternFromString("args"));
  PyObject* descriptor = compat::type_lookup(reinterpret_cast<PyTypeObject*>(PyExc_BaseException), name.get());
  Ref arguments = checked(PyObject_GetAttr(exception, name.get()));
  return heap.enter(heap.sources().keyed(SourceKind::member, source, descriptor), arguments.get());
}

}  // namespace

Ref Heap::behind_proxy(PyObject* proxy) {
  if (Py_TYPE(proxy) != &PyDictProxy_Type) return {};
  PyObject* mapping = compat::mapping_of_proxy(proxy);
  if (mapping == nullptr || types_.of(mapping).container != Container::dict) return {};
  if (source_of(mapping) || is_born(mapping)) return Ref::borrow(mapping);
  if (is_born(proxy) && PyDict_CheckExact(mapping)) throw GraphBreak("a mappingproxy of unknown origin is read");  // it may be that of a class
  if (is_born(proxy)) return adopt(Ref::borrow(mapping));
  return source_of(proxy) ? part(SourceKind::proxied, proxy, mapping) : Ref();
}

void Heap::expose(PyObject* object, int depth, bool walked) {
  const TypeTraits& traits = types_.of(object);
  // C code asks numbers for their values, but takes no text that is not there yet.
  if (depth > 0 && traits.role == Recorder::Role::number && recorder_.apparent_type(object) == &PyUnicode_Type) recorder_.plain_number(object);
  if (traits.atom || traits.role != Recorder::Role::other) return;
  if (traits.python_class) guard_special_methods(Py_TYPE(object));
  if (traits.identity) return;
  if (traits.container == Container::set) tighten(object);
  if (!walked && !loose_dicts_.empty()) settle_keys(PyDictViewSet_Check(object) ? compat::dict_of_view(object) : object);
  const SourceId source = source_of(object);
  if (traits.container == Container::none) {
    if (Ref mapping = behind_proxy(object)) return expose(mapping.get(), depth + 1);
    if (source && traits.iterator) throw GraphBreak("an iterator from before the call is read by C code");
    if (source && PySlice_Check(object)) {
      const Exposing exposing(*this);
      enter_parts_of_slice(*this, source, object);
    }
    if (source && PyExceptionInstance_Check(object) && exposed_.insert(object).second) {
      Ref arguments = enter_arguments_of_exception(*this, source, object);
      expose(arguments.get(), depth + 1);
    }
    return;
  }
  if (source && !exposed_.insert(object).second) return;  // one without a source may get one, and is read again then
  if (source) expose_known(object, source, traits);
  if (depth >= kDeepestExposed) throw GraphBreak("containers nested too deeply for C code to read them under guard");
  switch (traits.container) {
    case Container::dict: {
      Py_ssize_t position = 0;
      PyObject *key, *value;
      while (PyDict_Next(object, &position, &key, &value)) {
        expose(key, depth + 1);
        expose(value, depth + 1);
      }
      break;
    }
    case Container::list:
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) expose(PyList_GET_ITEM(object, i), depth + 1);
      break;
    case Container::tuple:
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) expose(PyTuple_GET_ITEM(object, i), depth + 1);
      break;
    default: break;
  }
}

void Heap::expose_items(PyObject* iterable) {
  const TypeTraits& traits = types_.of(iterable);
  const bool sequence = traits.exact && (traits.container == Container::list || traits.container == Container::tuple);
  if (!sequence || !source_of(iterable) || changes_.find(iterable)) return expose_to_walk(iterable);
  const Exposing exposing(*this);
  const Py_ssize_t size = length(iterable);
  for (Py_ssize_t i = 0; i < size; ++i) sequence_item(iterable, i);
}

void Heap::expose_keys(PyObject* dict) {
  const SourceId source = source_of(dict);
  if (!types_.of(dict).exact || changes_.find(dict)) return expose(dict);
  if (source) guard_keys(source, dict);
}

void Heap::guard_keys(SourceId source, PyObject* dict) {
  Ref items = items_of(dict), keys = checked(PyTuple_New(PyList_GET_SIZE(items.get())));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i) PyTuple_SET_ITEM(keys.get(), i, Py_NewRef(PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 0)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i)
    if (!is_key_by_value(types_.of(PyTuple_GET_ITEM(keys.get(), i)))) throw GraphBreak("a dict whose keys are objects is read as a whole");
  guards_.add(GuardKind::dict_keys, source, keys.get());
}

void Heap::guard_items_of_set(SourceId source, PyObject* items) {
  Ref tuple = checked(PySequence_Tuple(items));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i)
    if (!is_key_by_value(types_.of(PyTuple_GET_ITEM(tuple.get(), i)))) throw GraphBreak("a set of objects is read as a whole");
  guards_.add(GuardKind::set_items, source, tuple.get());  // in their order, which depends on how they came in
}

void Heap::expose_known(PyObject* object, SourceId source, const TypeTraits& traits) {
  const Exposing exposing(*this);
  if (finds_written(changes_.find(object) != nullptr)) guard_original(object);
  else switch (traits.container) {
    case Container::dict: {
      guard_keys(source, object);
      Py_ssize_t position = 0;
      PyObject *key, *value;
      while (PyDict_Next(object, &position, &key, &value)) enter(sources().keyed(SourceKind::dict_item, source, key), value);
      break;
    }
    case Container::set:
    case Container::frozen_set: guard_items_of_set(source, object); break;
    default: {
      const Py_ssize_t size = length(object);
      for (Py_ssize_t i = 0; i < size; ++i) sequence_item(object, i);
    }
  }
}

}  // namespace tenon::python
