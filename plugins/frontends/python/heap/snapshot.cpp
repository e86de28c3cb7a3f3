#include "python/heap/snapshot.h"

#include <fmt/format.h>

#include "python/compat/object_layout.h"
#include "python/objects/dict_access.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

constexpr int kDeepest = 200;  // levels of what is made whole; containers that change are filled one after the other

/// The descriptor whose `__get__` has bound a C function: not always the one that its object's class finds first (`super().__call__`). Or null.
PyObject* descriptor_of_bound(PyObject* bound, PyObject* self, PyObject* name) {
  Ref defining = Ref::steal(PyObject_GetAttrString(bound, "__objclass__"));  // of a method wrapper
  PyErr_Clear();
  PyObject* order = Py_TYPE(self)->tp_mro;
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(order); ++at) {
    PyObject* base = PyTuple_GET_ITEM(order, at);
    PyObject* found = PyDict_GetItemWithError(compat::type_dict(reinterpret_cast<PyTypeObject*>(base)), name);
    if (found == nullptr) continue;
    if (Py_TYPE(found) == &PyWrapperDescr_Type && defining.is(base)) return found;
    const bool same = Py_TYPE(found) == &PyMethodDescr_Type && PyCFunction_Check(bound) &&
                      reinterpret_cast<PyMethodDescrObject*>(found)->d_method == reinterpret_cast<PyCFunctionObject*>(bound)->m_ml;
    if (same) return found;
  }
  return nullptr;
}

[[noreturn]] void cannot_build(PyObject* object) {
  throw Unbuildable(object, fmt::format("a {} cannot be built again by later calls", Py_TYPE(object)->tp_name));
}

/// Later calls build a container before they write to older objects: a key that they write to must not say by what it holds where it belongs.
void require_settled_key(Heap& heap, PyObject* key, PyObject* container) {
  if (PyTuple_Check(key))
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(key); ++at) require_settled_key(heap, PyTuple_GET_ITEM(key, at), container);
  if (!heap.traits(key).python_class || !heap.source_of(key)) return;
  PyObject* hash = compat::type_lookup(Py_TYPE(key), names().__hash__);
  if (hash == nullptr || !PyFunction_Check(hash)) return;
  if (heap.wrote_object(key)) throw Unbuildable(container, fmt::format("a {} whose hash may have changed is a key", Py_TYPE(key)->tp_name));
}

/// And no key, also a new one, may by now say something else than when it came in.
void require_steady_hashes(PyObject* container) {
  for (const auto& [key, hash] : compat::hashed_keys(container)) {
    if (!is_python_function(compat::type_lookup(key.type(), names().__hash__))) continue;
    const Py_hash_t now = PyObject_Hash(key.get());
    if (now == -1) PyErr_Clear();
    if (now != hash) throw Unbuildable(container, fmt::format("a {} holds a {} whose hash has changed", Py_TYPE(container)->tp_name, key.type()->tp_name));
  }
}

}  // namespace

std::uint32_t Snapshot::add(PyObject* object) {
  const std::uint32_t node = write(object);
  while (!open_.empty()) {
    auto [at, shell] = std::move(open_.back());
    open_.pop_back();
    fill(at, shell.get());
  }
  return node;
}

std::uint32_t Snapshot::add_source(SourceId source) {
  result_.sources.push_back(source);
  return append({.kind = Kind::source, .index = static_cast<std::uint32_t>(result_.sources.size() - 1)});
}

std::uint32_t Snapshot::append(Node node) {
  result_.nodes.push_back(std::move(node));
  return static_cast<std::uint32_t>(result_.nodes.size() - 1);
}

std::uint32_t Snapshot::shell(PyObject* object, Kind kind) {
  const std::uint32_t at = append({.kind = kind});
  open_.emplace_back(at, Ref::borrow(object));
  return at;
}

std::uint32_t Snapshot::whole(Kind kind, Ref detail, std::initializer_list<PyObject*> children) {
  Node node{.kind = kind, .object = std::move(detail)};
  for (PyObject* each : children) node.children.push_back(write(each));
  return append(std::move(node));
}

std::uint32_t Snapshot::sequence(Kind kind, Ref detail, PyObject* items) {
  Node node{.kind = kind, .object = std::move(detail)};
  for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(items); ++at) node.children.push_back(write(PySequence_Fast_GET_ITEM(items, at)));
  return append(std::move(node));
}

std::uint32_t Snapshot::write(PyObject* object) {
  if (const auto seen = done_.find(object); seen != done_.end()) return seen->second;
  if (depth_ == kDeepest) throw Unbuildable(object, "a result is nested too deeply");
  heap_.require_not_held_by_context(object);
  ++depth_;
  const std::uint32_t node = classify(object);
  --depth_;
  done_[object] = node;
  keep_.push_back(Ref::borrow(object));
  return node;
}

std::uint32_t Snapshot::classify(PyObject* object) {
  const TypeTraits& traits = heap_.traits(object);
  const auto constant = [&] { return append({.kind = Kind::constant, .object = Ref::borrow(object)}); };
  if (traits.role == Recorder::Role::stand_in || traits.role == Recorder::Role::number) {
    if (const SourceId source = recorder_.input_source(object)) return add_source(source);
    if (const auto text = recorder_.late_call(object)) return sequence(Kind::call, text->function, text->arguments.get());
    return append({.kind = Kind::output, .index = recorder_.output(object)});
  }
  // A torch.Size is an atom, too, unless it holds sizes that vary.
  if (traits.atom && PyTuple_Check(object))
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(object); ++at)
      if (heap_.is_number(PyTuple_GET_ITEM(object, at))) return sequence(Kind::tuple_subclass, Ref::borrow(as_object(Py_TYPE(object))), object);
  if (traits.atom && PyLong_CheckExact(object) && heap_.was_raised(object)) throw Unbuildable(object, "an object's address is kept");
  if (traits.atom) return constant();
  if (const SourceId source = heap_.source_of(object)) return heap_.sources()[source].kind == SourceKind::constant ? constant() : add_source(source);
  if (traits.role == Recorder::Role::scalar) return constant();
  if (traits.role == Recorder::Role::tensor) {
    Ref seen = heap_.adopt(Ref::borrow(object));  // its stand-in, or a break
    return write(seen.get());
  }
  if (traits.identity && !heap_.is_born(object)) return constant();
  if (traits.container != Container::none) return container(object, traits);
  return other(object, traits);
}

std::uint32_t Snapshot::container(PyObject* object, const TypeTraits& traits) {
  PyTypeObject* type = Py_TYPE(object);
  Ref own_class = traits.exact ? Ref() : Ref::borrow(as_object(type));
  if (own_class && heap_.is_born(own_class.get())) cannot_build(object);
  switch (traits.container) {
    case Container::list: return shell(object, Kind::list);
    case Container::set: return shell(object, Kind::set);
    case Container::deque: return shell(object, Kind::deque);
    case Container::tuple: return sequence(traits.exact ? Kind::tuple : Kind::tuple_subclass, std::move(own_class), object);
    case Container::frozen_set: {
      if (!traits.exact) cannot_build(object);
      Ref items = checked(PySequence_List(object));
      for (Py_ssize_t at = 0; at < PyList_GET_SIZE(items.get()); ++at) require_settled_key(heap_, PyList_GET_ITEM(items.get(), at), object);
      if (!keeps_order_of_set(items.get())) throw Unbuildable(object, "a set whose order depends on how it was filled");
      return sequence(Kind::frozen_set, {}, items.get());
    }
    default: break;
  }
  if (PyType_IsSubtype(type, library_types().ordered_dict)) return shell(object, Kind::ordered_dict);
  if (PyType_IsSubtype(type, library_types().default_dict)) return shell(object, Kind::default_dict);
  return shell(object, Kind::dict);
}

std::uint32_t Snapshot::other(PyObject* object, const TypeTraits& traits) {
  PyTypeObject* type = Py_TYPE(object);
  if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    return whole(Kind::slice, {}, {slice->start, slice->stop, slice->step});
  }
  if (PyMethod_Check(object)) {
    PyObject *function = PyMethod_GET_FUNCTION(object), *self = PyMethod_GET_SELF(object);
    const bool of_class = PyFunction_Check(function) || Py_IS_TYPE(function, &PyMethodDescr_Type) || Py_IS_TYPE(function, &PyWrapperDescr_Type) ||
                          std::string_view(Py_TYPE(function)->tp_name) == "tenon._tenon.ArrayMethodStandIn";
    return of_class ? bound_method(function, self) : whole(Kind::method, {}, {function, self});
  }
  if (PyCell_Check(object)) return shell(object, Kind::cell);
  if (PyFunction_Check(object)) return shell(object, Kind::function);
  if (type == library_types().partial) return shell(object, Kind::partial);
  if (PyDictKeys_Check(object) || PyDictValues_Check(object) || PyDictItems_Check(object)) {
    const char* method = PyDictKeys_Check(object) ? "keys" : PyDictValues_Check(object) ? "values" : "items";
    const bool plain = type == &PyDictKeys_Type || type == &PyDictValues_Type || type == &PyDictItems_Type;  // else it goes by an OrderedDict's order
    return whole(Kind::call, checked(PyObject_GetAttrString(as_object(plain ? &PyDict_Type : library_types().ordered_dict), method)), {compat::dict_of_view(object)});
  }
  if (Ref mapping = heap_.behind_proxy(object)) return whole(Kind::call, Ref::borrow(as_object(&PyDictProxy_Type)), {mapping.get()});
  const bool bound = (PyCFunction_Check(object) && PyCFunction_GET_SELF(object) != nullptr) || type == compat::method_wrapper_type();
  if (bound) {
    Ref self = checked(PyObject_GetAttr(object, names().__self__)), name = checked(PyObject_GetAttr(object, names().__name__));
    if (self.is(Py_None)) return append({.kind = Kind::constant, .object = Ref::borrow(object)});  // for which `__get__` would not bind
    if (heap_.traits(self.get()).role == Recorder::Role::stand_in) return bound_method(object, self.get());
    if (!PyType_Check(self.get()) && !PyModule_Check(self.get())) {
      PyObject* descriptor = descriptor_of_bound(object, self.get(), name.get());
      if (descriptor == nullptr) cannot_build(object);
      // With the class: CPython 3.11 reads it for methods that take their defining class.
      return whole(Kind::call, checked(PyObject_GetAttr(descriptor, names().__get__)), {self.get(), as_object(self.type())});
    }
  }
  if (traits.iterator) return iterator(object);
  if (heap_.is_born(as_object(type))) cannot_build(object);
  if (heap_.was_raised(object)) cannot_build(object);  // its traceback
  if (PyExceptionInstance_Check(object) && !PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(PyExc_BaseExceptionGroup))) return shell(object, Kind::exception);
  if (traits.python_class && is_plain_class(type)) return shell(object, Kind::instance);
  cannot_build(object);
}

std::uint32_t Snapshot::bound_method(PyObject* function, PyObject* self) {
  if (PyFunction_Check(function) || heap_.traits(self).role != Recorder::Role::stand_in) return whole(Kind::method, {}, {function, self});
  // What it is bound to is an array or NumPy scalar to the program: the method is that of its class.
  PyObject* type = as_object(recorder_.apparent_type(self));
  Ref descriptor = Ref::steal(PyObject_GetAttr(type, checked(PyObject_GetAttr(function, names().__name__)).get()));
  if (!descriptor) {
    PyErr_Clear();
    cannot_build(function);
  }
  return whole(Kind::call, checked(PyObject_GetAttr(descriptor.get(), names().__get__)), {self, type});
}

/// The iterator of a dict that is as it was before the call: over the same view, as far on.
std::uint32_t Snapshot::iterator_of_dict(PyObject* iterator) {
  PyObject* dict = compat::dict_of_iterator(iterator);
  const Py_ssize_t left = PyObject_LengthHint(iterator, 0);
  if (dict == nullptr || left <= 0 || !heap_.source_of(dict) || heap_.wrote_container(dict)) cannot_build(iterator);  // at its end, left is 0
  const char* view = Py_TYPE(iterator) == &PyDictIterKey_Type ? "keys" : Py_TYPE(iterator) == &PyDictIterValue_Type ? "values" : "items";
  const std::uint32_t over = whole(Kind::call, checked(PyObject_GetAttrString(as_object(&PyDict_Type), view)), {dict});
  return append({.kind = Kind::iterator, .index = static_cast<std::uint32_t>(PyDict_GET_SIZE(dict) - left), .children = {over}});
}

/// Built-in iterators say themselves how to make them again: (callable, arguments) or (callable, arguments, state).
std::uint32_t Snapshot::iterator(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyDictIterKey_Type || type == &PyDictIterValue_Type || type == &PyDictIterItem_Type) return iterator_of_dict(object);
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) cannot_build(object);
  static const std::string_view known = " list_iterator list_reverseiterator tuple_iterator range_iterator str_ascii_iterator str_iterator enumerate zip reversed iterator ";
  if (known.find(fmt::format(" {} ", type->tp_name)) == std::string_view::npos) cannot_build(object);
  Ref parts = checked(PyObject_CallMethod(object, "__reduce__", nullptr));
  if (!PyTuple_Check(parts.get()) || PyTuple_GET_SIZE(parts.get()) < 2) cannot_build(object);
  if (PySeqIter_Check(object) && PyTuple_GET_SIZE(parts.get()) < 3) cannot_build(object);  // at its end, where it names an iterator of another type
  const std::uint32_t at = sequence(Kind::call, Ref::borrow(PyTuple_GET_ITEM(parts.get(), 0)), PyTuple_GET_ITEM(parts.get(), 1));
  if (PyTuple_GET_SIZE(parts.get()) > 2 && PyTuple_GET_ITEM(parts.get(), 2) != Py_None) {
    if (!PyLong_Check(PyTuple_GET_ITEM(parts.get(), 2))) cannot_build(object);
    result_.nodes[at].detail = Ref::borrow(PyTuple_GET_ITEM(parts.get(), 2));
  }
  keep_.push_back(std::move(parts));
  return at;
}

// ---- what is filled when all nodes are there

void Snapshot::fill_items(std::uint32_t at, PyObject* items) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); ++i) {
    const std::uint32_t item = write(PySequence_Fast_GET_ITEM(items, i));
    result_.nodes[at].children.push_back(item);
  }
}

void Snapshot::fill_pairs(std::uint32_t at, PyObject* dict) {
  Ref list = items_past_override(dict);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(list.get(), i);
    require_settled_key(heap_, PySequence_Fast_GET_ITEM(pair, 0), dict);
    fill_items(at, pair);
  }
}

namespace {

/// Whether an assignment to the attribute of its name makes each entry: no key is something else, or the name of what the class keeps elsewhere.
bool holds_attributes_alone(PyTypeObject* type, PyObject* dict) {
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict, &position, &key, &value)) {
    if (!PyUnicode_CheckExact(key)) return false;
    PyObject* found = compat::type_lookup(type, key);
    if (found != nullptr && Py_TYPE(found)->tp_descr_set != nullptr) return false;
  }
  return true;
}

}  // namespace

/// Attributes in the `__dict__` and in slots (member descriptors along the bases), after those that are named.
void Snapshot::fill_attributes(std::uint32_t at, PyObject* object, std::initializer_list<const char*> first) {
  std::vector<Ref> all_names;
  const auto attribute = [&](Ref name, PyObject* value) {
    const std::uint32_t node = write(value);
    all_names.push_back(std::move(name));
    result_.nodes[at].attributes.push_back(node);
  };
  for (const char* name : first) {
    Ref value = checked(PyObject_GetAttrString(object, name));
    if (!value.is(Py_None)) attribute(checked(PyUnicode_InternFromString(name)), value.get());
  }
  if (PyObject* dict = compat::instance_dict(object)) {
    const bool assignable = holds_attributes_alone(Py_TYPE(object), dict);
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &position, &key, &value)) {
      if (assignable) {
        attribute(Ref::borrow(key), value);
        continue;
      }
      const std::uint32_t key_node = write(key), value_node = write(value);
      result_.nodes[at].entries.insert(result_.nodes[at].entries.end(), {key_node, value_node});
    }
  }
  PyObject* order = Py_TYPE(object)->tp_mro;
  const bool is_exception = PyExceptionInstance_Check(object);  // whose members read as None where they hold nothing
  for (Py_ssize_t base = 0; base < PyTuple_GET_SIZE(order); ++base) {
    Py_ssize_t position = 0;
    PyObject *key, *member;
    while (PyDict_Next(compat::type_dict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, base))), &position, &key, &member)) {
      if (Py_TYPE(member) != &PyMemberDescr_Type || !compat::is_writable_member(member)) continue;
      Ref value = Ref::steal(Py_TYPE(member)->tp_descr_get(member, object, as_object(Py_TYPE(object))));
      if (!value) PyErr_Clear();
      else if (!value.is(Py_None) || !is_exception) attribute(Ref::borrow(key), value.get());
    }
  }
  if (all_names.empty()) return;
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(all_names.size())));
  for (std::size_t i = 0; i < all_names.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, all_names[i].release());
  result_.nodes[at].names = std::move(tuple);
}

void Snapshot::fill_function(std::uint32_t at, PyObject* object) {
  auto* parts = reinterpret_cast<PyFunctionObject*>(object);
  result_.nodes[at].object = checked(PyTuple_Pack(3, parts->func_code, parts->func_globals, parts->func_qualname));
  if (parts->func_closure != nullptr) {
    const std::uint32_t closure = write(parts->func_closure);
    result_.nodes[at].children.push_back(closure);
  }
  Ref plain = checked(PyFunction_NewWithQualName(parts->func_code, parts->func_globals, parts->func_qualname));
  std::vector<Ref> all_names;
  const auto attribute = [&](const char* name, PyObject* value, PyObject* usual) {
    if (value == nullptr || value == usual || (usual == nullptr && value == Py_None)) return;
    const std::uint32_t node = write(value);
    all_names.push_back(checked(PyUnicode_InternFromString(name)));
    result_.nodes[at].attributes.push_back(node);
  };
  auto* usual = reinterpret_cast<PyFunctionObject*>(plain.get());
  attribute("__defaults__", parts->func_defaults, usual->func_defaults);
  attribute("__kwdefaults__", parts->func_kwdefaults, usual->func_kwdefaults);
  attribute("__name__", parts->func_name, usual->func_name);
  attribute("__doc__", parts->func_doc, usual->func_doc);
  attribute("__module__", parts->func_module, usual->func_module);
  if (parts->func_annotations != nullptr) {
    Ref annotations = checked(PyObject_GetAttr(object, names().__annotations__));  // as a dict
    keep_.push_back(annotations);
    if (heap_.traits(annotations.get()).container == Container::dict) attribute("__annotations__", annotations.get(), nullptr);
  }
  if (parts->func_dict != nullptr && PyDict_GET_SIZE(parts->func_dict) > 0) attribute("__dict__", parts->func_dict, nullptr);
  if (all_names.empty()) return;
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(all_names.size())));
  for (std::size_t i = 0; i < all_names.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, all_names[i].release());
  result_.nodes[at].names = std::move(tuple);
}

void Snapshot::fill_exception(std::uint32_t at, PyObject* object) {
  result_.nodes[at].object = Ref::borrow(as_object(Py_TYPE(object)));
  // Setting a cause sets `__suppress_context__` too, which comes after it as a member.
  fill_attributes(at, object, {"args", "__cause__", "__context__", "__traceback__"});
}

void Snapshot::fill(std::uint32_t at, PyObject* object) {
  const Kind kind = result_.nodes[at].kind;
  const bool has_class = kind != Kind::function && kind != Kind::cell && kind != Kind::partial && !heap_.traits(object).exact;
  if (has_class) result_.nodes[at].object = Ref::borrow(as_object(Py_TYPE(object)));
  if (PyDict_Check(object) || PyAnySet_Check(object)) require_steady_hashes(object);
  switch (kind) {
    case Kind::list: fill_items(at, object); break;
    case Kind::set:
    case Kind::deque: {
      if (kind == Kind::deque) result_.nodes[at].detail = checked(PyObject_GetAttr(object, names().maxlen));
      Ref iterator = checked((kind == Kind::set ? &PySet_Type : library_types().deque)->tp_iter(object));
      Ref items = checked(PySequence_List(iterator.get()));
      for (Py_ssize_t each = 0; kind == Kind::set && each < PyList_GET_SIZE(items.get()); ++each) require_settled_key(heap_, PyList_GET_ITEM(items.get(), each), object);
      if (kind == Kind::set && !keeps_order_of_set(items.get())) throw Unbuildable(object, "a set whose order depends on how it was filled");
      fill_items(at, items.get());
      break;
    }
    case Kind::dict:
    case Kind::ordered_dict:
    case Kind::default_dict: fill_pairs(at, object); break;
    case Kind::cell:
      if (PyObject* value = PyCell_GET(object)) {
        const std::uint32_t contents = write(value);
        result_.nodes[at].children.push_back(contents);
      }
      return;
    case Kind::partial:
      for (const char* part : {"func", "args", "keywords", "__dict__"}) {
        Ref value = checked(PyObject_GetAttrString(object, part));
        const std::uint32_t node = write(value.get());
        result_.nodes[at].children.push_back(node);
      }
      return;
    case Kind::function: fill_function(at, object); return;
    case Kind::exception: fill_exception(at, object); return;
    default: break;
  }
  // `default_factory` is a member; an OrderedDict of no other class has a `__dict__`, too.
  if (has_class || kind == Kind::default_dict || kind == Kind::ordered_dict) fill_attributes(at, object);
}

}  // namespace tenon::python
