#include "python/evaluator/items.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "python/compat/object_layout.h"
#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/evaluator/generators.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// An index into a sequence of that length, counted from its start, or an IndexError with the type's own words.
Py_ssize_t in_range(PyObject* sequence, PyObject* key, Py_ssize_t length) {
  Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (index == -1 && PyErr_Occurred()) throw_python_error();
  if (index < 0) index += length;
  if (index >= 0 && index < length) return index;
  PyErr_Format(PyExc_IndexError, "%s index out of range", PyTuple_Check(sequence) ? "tuple" : PyList_Check(sequence) ? "list" : "deque");
  throw PythonError();
}

/// A slice of a list or tuple: its items as the program sees them.
Ref part_of_sequence(Heap& heap, PyObject* sequence, PyObject* slice) {
  Py_ssize_t start = 0, stop = 0, step = 0;
  checked(PySlice_Unpack(slice, &start, &stop, &step));
  const Py_ssize_t size = heap.length(sequence), count = PySlice_AdjustIndices(size, &start, &stop, step);
  const bool is_tuple = PyTuple_Check(sequence);
  if (is_tuple && count == size && step == 1) return Ref::borrow(sequence);
  Ref part = heap.born(checked(is_tuple ? PyTuple_New(count) : PyList_New(count)));
  for (Py_ssize_t at = 0; at < count; ++at) {
    PyObject* item = heap.sequence_item(sequence, start + at * step).release();
    if (is_tuple) PyTuple_SET_ITEM(part.get(), at, item);
    else PyList_SET_ITEM(part.get(), at, item);
  }
  return part;
}

/// The index, as the program gives it, where it is in range of a list.
std::optional<Py_ssize_t> index_into_list(PyObject* sequence, PyObject* key) {
  if (!PyList_Check(sequence) || !PyLong_CheckExact(key)) return {};
  const Py_ssize_t index = PyLong_AsSsize_t(key), length = PyList_GET_SIZE(sequence);
  if (index == -1 && PyErr_Occurred()) PyErr_Clear();  // no list is so long: the general road has the words
  else if (index >= -length && index < length) return index;
  return {};
}

/// Whether guards say all that there is to say of an object: a constant, a class, what `also` guards, a tuple or list of such.
bool is_fixed(Heap& heap, PyObject* object, bool (*also)(Heap&, PyObject*) = nullptr, int depth = 0) {
  constexpr int kDeepest = 4;
  if (heap.is_number(object) || heap.is_stand_in(object)) return false;
  const TypeTraits& traits = heap.traits(object);
  if (traits.atom || traits.identity || (also && also(heap, object))) return true;
  if (!traits.exact || depth == kDeepest || (traits.container != Container::tuple && traits.container != Container::list)) return false;
  for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(object); ++at)
    if (!is_fixed(heap, PySequence_Fast_GET_ITEM(object, at), also, depth + 1)) return false;
  return true;
}

/// typing's special forms, generic aliases and type variables.
bool is_of_typing(Heap& heap, PyObject* object) {
  if (!heap.traits(object).python_class || heap.traits(object).container != Container::none || heap.traits(object).identity) return false;
  Ref module = Ref::steal(PyObject_GetAttr(as_object(Py_TYPE(object)), names().__module__));
  PyErr_Clear();
  return module && PyUnicode_Check(module.get()) && PyUnicode_CompareWithASCIIString(module.get(), "typing") == 0;
}

/// Whether such an object is older than the call, and then the same one at every call, under a guard.
bool is_same_of_typing(Heap& heap, PyObject* object) {
  if (!is_of_typing(heap, object)) return false;
  const SourceId source = heap.source_of(object);
  if (source && heap.sources()[source].kind != SourceKind::constant) heap.guards().add(GuardKind::identity, source, object);
  return static_cast<bool>(source);
}

/// Optional[int], Callable[[int], T]: typing keeps what it has made, and later calls get that.
Ref alias_of_typing(Heap& heap, PyObject* form, PyObject* key) {
  if (!is_fixed(heap, form, is_same_of_typing) || !is_fixed(heap, key, is_same_of_typing)) return {};
  heap.expose(key);
  Ref alias = checked(PyObject_GetItem(form, key));
  if (!heap.traits(alias.get()).identity) heap.make_known(alias.get(), heap.sources().constant(alias.get()));
  return alias;
}

}  // namespace

Ref Items::plain_index(PyObject* key) {
  if (PySlice_Check(key) && !heap_.source_of(key)) {
    auto* slice = reinterpret_cast<PySliceObject*>(key);
    Ref start = plain_index(slice->start), stop = plain_index(slice->stop), step = plain_index(slice->step);
    if (start.is(slice->start) && stop.is(slice->stop) && step.is(slice->step)) return Ref::borrow(key);
    return heap_.born(checked(PySlice_New(start.get(), stop.get(), step.get())));
  }
  const TypeTraits& traits = heap_.traits(key);
  if (!traits.python_class || traits.atom || traits.identity || traits.role != Recorder::Role::other || PyLong_Check(key)) return Ref::borrow(key);
  PyObject* method = heap_.type_attribute(Py_TYPE(key), names().__index__);
  return is_python_function(method) ? core_.call_now(method, {key}) : Ref::borrow(key);
}

/// An older slice as one that was born here, of what the program sees: sizes and tensors that may vary.
Ref Items::slice_of_parts(PyObject* slice) {
  std::array<Ref, 3> parts;
  std::size_t at = 0;
  for (const char* name : {"start", "stop", "step"}) parts[at++] = core_.attributes().load(slice, checked(PyUnicode_InternFromString(name)).get());
  return heap_.born(checked(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get())));
}

/// A subscript of a tensor with its older slices, also those in a tuple, as such. Itself where it has none.
Ref Items::subscript_of_parts(PyObject* key) {
  if (PySlice_Check(key)) return heap_.source_of(key) ? slice_of_parts(key) : Ref::borrow(key);
  if (!PyTuple_CheckExact(key)) return Ref::borrow(key);
  const bool older = static_cast<bool>(heap_.source_of(key));
  const auto has_older_slice = [&](PyObject* item) { return PySlice_Check(item) && (older || static_cast<bool>(heap_.source_of(item))); };
  if (std::none_of(&PyTuple_GET_ITEM(key, 0), &PyTuple_GET_ITEM(key, 0) + PyTuple_GET_SIZE(key), has_older_slice)) return Ref::borrow(key);
  Ref parts = checked(PyTuple_New(PyTuple_GET_SIZE(key)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    const Ref item = older ? load(key, checked(PyLong_FromSsize_t(i)).get()) : Ref::borrow(PyTuple_GET_ITEM(key, i));
    PyTuple_SET_ITEM(parts.get(), i, subscript_of_parts(item.get()).release());
  }
  return heap_.born(std::move(parts));
}

Ref Items::load(PyObject* container, PyObject* key) {
  if (Ref mapping = heap_.behind_proxy(container)) return load(mapping.get(), key);
  const TypeTraits& traits = heap_.traits(container);
  const bool of_tensor = traits.role == Recorder::Role::stand_in && PySlice_Check(key);  // an object may mean a sequence to torch
  const bool by_index = traits.atom || of_tensor || traits.container == Container::list || traits.container == Container::tuple || traits.container == Container::deque;
  const Ref index = by_index ? plain_index(key) : Ref::borrow(key);
  if (!index.is(key)) return load(container, index.get());
  if (traits.role == Recorder::Role::stand_in) {
    if (const Ref parts = subscript_of_parts(key); !parts.is(key)) return load(container, parts.get());
    heap_.expose(key);
    core_.hidden_calls().require_plain(key);
    Ref seen = heap_.substitute(key);
    core_.mark_position();
    return heap_.adopt(checked(PyObject_GetItem(container, seen.get())));
  }
  if (PyType_Check(container)) {
    if (PyType_IsSubtype(Py_TYPE(container), library_types().enum_meta)) {
      Ref member = checked(PyObject_GetItem(container, key));
      return heap_.is_born(container) ? heap_.adopt(std::move(member)) : heap_.enter(heap_.sources().constant(member.get()), member.get());
    }
    if (PyObject* of_metaclass = heap_.type_attribute(Py_TYPE(container), names().__getitem__); is_python_function(of_metaclass)) return core_.call_now(of_metaclass, {container, key});
    PyObject* of_class = heap_.type_attribute(reinterpret_cast<PyTypeObject*>(container), names().__class_getitem__);
    if (of_class != nullptr && (PyFunction_Check(of_class) || Py_TYPE(of_class) == &PyClassMethod_Type) && heap_.traits(reinterpret_cast<PyTypeObject*>(container)).python_class)
      if (Ref method = core_.attributes().load(container, names().__class_getitem__); PyMethod_Check(method.get()) || PyFunction_Check(method.get())) return core_.call_now(method.get(), {key});
    // list[int]: later calls get the alias that is made here, with what it holds.
    if (!is_fixed(heap_, key)) throw GraphBreak(fmt::format("{} is subscripted with a {}", reinterpret_cast<PyTypeObject*>(container)->tp_name, core_.visible_type(key)->tp_name));
    core_.equality().prepare_hash(key);
    heap_.expose(key);
    return heap_.adopt(checked(PyObject_GetItem(container, key)));
  }
  if (is_of_typing(heap_, container))
    if (Ref alias = alias_of_typing(heap_, container, key)) return alias;
  PyObject* method = heap_.type_attribute(Py_TYPE(container), names().__getitem__);
  if (is_python_function(method)) return core_.call_now(method, {container, key});
  if (traits.atom) {
    heap_.expose(key);
    if (PySlice_Check(key))
      if (std::optional<Ref> part = slice_of_sizes(core_, container, key)) return std::move(*part);
    return heap_.adopt(checked(PyObject_GetItem(container, key)));
  }
  if (traits.container == Container::dict) core_.equality().prepare_key(key, container);
  switch (traits.container) {
    case Container::dict: {
      if (Ref value = heap_.dict_item(container, key)) return value;
      PyObject* missing = heap_.type_attribute(Py_TYPE(container), names().__missing__);
      if (is_python_function(missing)) return core_.call_now(missing, {container, key});
      if (missing != nullptr) {
        Ref factory = core_.attributes().load(container, names().default_factory);
        if (!factory.is(Py_None)) {
          Ref value = core_.call_now(factory.get(), {});
          heap_.store_key(container, key, value.get());
          return value;
        }
      }
      PyErr_SetObject(PyExc_KeyError, key);
      throw PythonError();
    }
    case Container::list:
    case Container::tuple:
    case Container::deque:
      if (PySlice_Check(key)) {
        heap_.expose(key);
        if (traits.exact && traits.container != Container::deque) return part_of_sequence(heap_, container, key);
        heap_.expose(container);
        return heap_.adopt(checked(PyObject_GetItem(container, key)));
      }
      if (heap_.is_number(key) && traits.exact && traits.container != Container::deque)
        if (Ref item = heap_.chosen_item(container, key)) return item;
      if (const auto index = index_into_list(container, key)) return heap_.list_item(container, *index);
      if (PyIndex_Check(key) && !core_.is_stand_in(key)) return heap_.sequence_item(container, in_range(container, key, heap_.length(container)));
      core_.mark_position();
      return heap_.adopt(checked(PyObject_GetItem(container, key)));
    default: break;
  }
  if (heap_.is_born(container) && !heap_.source_of(container) && are_flags_of_array(container)) return heap_.adopt(checked(PyObject_GetItem(container, key)));
  throw GraphBreak(fmt::format("a subscript of a {}", Py_TYPE(container)->tp_name));
}

void Items::store(PyObject* container, PyObject* key, PyObject* value) {
  const TypeTraits& traits = heap_.traits(container);
  const bool of_tensor = traits.role == Recorder::Role::stand_in && PySlice_Check(key);
  const bool by_index = of_tensor || traits.container == Container::list || traits.container == Container::deque;
  const Ref plain = by_index ? plain_index(key) : Ref::borrow(key);
  if (!plain.is(key)) return store(container, plain.get(), value);
  if (traits.role == Recorder::Role::stand_in) {
    if (value == nullptr) throw GraphBreak("'del' of a part of a tensor");
    if (const Ref parts = subscript_of_parts(key); !parts.is(key)) return store(container, parts.get(), value);
    heap_.expose(key);
    core_.hidden_calls().require_plain(key);
    Ref index = heap_.substitute(key), given = heap_.substitute(value);
    core_.mark_position();
    checked(PyObject_SetItem(container, index.get(), given.get()));
    return;
  }
  PyObject* method = heap_.type_attribute(Py_TYPE(container), value ? names().__setitem__ : names().__delitem__);
  if (is_python_function(method)) {
    if (value) core_.call_now(method, {container, key, value});
    else core_.call_now(method, {container, key});
    return;
  }
  if (traits.container == Container::none) throw GraphBreak(fmt::format("assignment to an item of a {}", Py_TYPE(container)->tp_name));
  if (traits.container == Container::dict) {
    const Ref known = heap_.is_number(key) ? Ref::borrow(key) : heap_.plain_key(key);
    key = known.get();
    core_.equality().prepare_key(key, container);
    if (value == nullptr && !heap_.dict_contains(container, key)) {
      PyErr_SetObject(PyExc_KeyError, heap_.plain_key(key).get());
      throw PythonError();
    }
    heap_.store_key(container, key, value);
    return;
  }
  const bool refuses = traits.container != Container::list && traits.container != Container::deque;
  if (refuses || !heap_.is_older(container, "assignment to an item")) {
    if (value) heap_.expose(value);
    heap_.expose(key);
    checked(value ? PyObject_SetItem(container, key, value) : PyObject_DelItem(container, key));
    return;
  }
  Arguments arguments;
  arguments.values = {Ref::borrow(key)};
  if (value) arguments.values.push_back(Ref::borrow(value));
  change_older(core_, container, value ? "__setitem__" : "__delitem__", std::move(arguments));
}

bool Items::contains(PyObject* container, PyObject* item) {
  if (Ref mapping = heap_.behind_proxy(container)) return contains(mapping.get(), item);
  const TypeTraits& traits = heap_.traits(container);
  if (traits.role == Recorder::Role::stand_in) throw GraphBreak("'in' looks at the values of a tensor", kTensorHint);
  PyObject* method = heap_.type_attribute(Py_TYPE(container), names().__contains__);
  if (is_python_function(method)) return core_.operators().truth(core_.call_now(method, {container, item}).get());
  if (traits.container == Container::dict) {
    if (core_.is_stand_in(item) && heap_.source_of(container)) throw GraphBreak("a tensor is looked up in a dict", kTensorHint);
    core_.equality().prepare_key(item, container);
    return heap_.dict_contains(container, item);
  }
  const bool is_set = traits.container == Container::set || traits.container == Container::frozen_set;
  if (is_set && !(core_.is_stand_in(item) && heap_.source_of(container))) {
    if (heap_.is_no_key(container, item)) return false;
    heap_.expose(container);
    core_.equality().prepare_key(item, container);
    return checked(PySequence_Contains(container, item)) != 0;
  }
  if (core_.is_stand_in(item)) {
    // Identity first, as Python does; comparing would need the values.
    if (traits.container == Container::list || traits.container == Container::tuple) {
      heap_.expose(container);
      Ref seen = heap_.substitute(container);
      for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(seen.get()); ++at) {
        PyObject* each = PySequence_Fast_GET_ITEM(seen.get(), at);
        if (each == item) return true;
        if (core_.is_stand_in(each)) break;
      }
    }
    throw GraphBreak("a tensor is compared with the items of a container", kTensorHint);
  }
  const bool iterated = method == nullptr && (is_python_function(heap_.type_attribute(Py_TYPE(container), names().__iter__)) || is_evaluated_generator(container));
  if (iterated || core_.equality().has_python_equality(item) || core_.equality().has_python_equality(container) || core_.hidden_calls().holds_older_numbers(container)) return core_.equality().contains_by_comparing(container, item);
  heap_.expose(item);
  heap_.expose(container);
  if (heap_.holds_tensor(item) || heap_.holds_tensor(container)) return core_.equality().contains_by_comparing(container, item);
  core_.hidden_calls().require_plain(container);
  core_.hidden_calls().require_readable(item);
  const bool view = PyDictViewSet_Check(container) || PyDictValues_Check(container);  // its dict was exposed when it was made
  const bool known_type = traits.atom || traits.container != Container::none || PyType_IsSubtype(Py_TYPE(container), library_types().enum_meta) ||
                          (heap_.is_born(container) && (view || traits.iterator));
  if (!known_type) throw GraphBreak(fmt::format("'in' a {}", Py_TYPE(container)->tp_name));
  core_.equality().tell_items_apart(container, item);
  return checked(PySequence_Contains(container, item)) != 0;
}

void Items::op_slice(Frame&, const Instruction& i) {
  Ref stop = core_.pop(), start = core_.pop(), container = core_.pop();
  Ref slice = heap_.born(checked(PySlice_New(start.get(), stop.get(), nullptr)));
  if (i.op == Op::binary_slice) {
    core_.push(load(container.get(), slice.get()));
    return;
  }
  Ref value = core_.pop();
  store(container.get(), slice.get(), value.get());
}

}  // namespace tenon::python
