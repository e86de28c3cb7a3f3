#include "python/evaluator/iteration.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/evaluator/generators.h"
#include "python/compat/object_layout.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// An OrderedDict looks its own keys up while it is walked over, which decides nothing.
Ref step(Recorder& recorder, PyObject* iterator) {
  const bool looks_up = std::string_view(Py_TYPE(iterator)->tp_name) == "odict_iterator";
  const bool before = looks_up && recorder.hash_unguarded(true);
  Ref value = Ref::steal(Py_TYPE(iterator)->tp_iternext(iterator));
  if (looks_up) recorder.hash_unguarded(before);
  return value;
}

}  // namespace

Ref Iteration::iterator_of(PyObject* iterable, bool of_loop) {
  if (Ref mapping = heap_.behind_proxy(iterable)) return iterator_of(mapping.get(), of_loop);
  const TypeTraits& traits = heap_.traits(iterable);
  if (traits.role == Recorder::Role::stand_in) {
    return iterator_of_array(iterable);
  }
  if (is_evaluated_generator(iterable)) return Ref::borrow(iterable);
  if (PyType_Check(iterable)) {
    if (!PyType_IsSubtype(Py_TYPE(iterable), library_types().enum_meta)) throw GraphBreak("iteration over a class");
    Ref members = checked(PySequence_List(iterable));
    return heap_.born(checked(PyObject_GetIter(members.get())));
  }
  PyObject* method = traits.atom ? nullptr : heap_.type_attribute(Py_TYPE(iterable), names().__iter__);
  if (is_python_function(method)) {
    Ref iterator = core_.call_now(method, {iterable});
    if (PyIter_Check(iterator.get())) return iterator;
    PyErr_Format(PyExc_TypeError, "iter() returned non-iterator of type '%.100s'", core_.visible_type(iterator.get())->tp_name);
    throw PythonError();
  }
  if (method == nullptr && traits.python_class && is_python_function(heap_.type_attribute(Py_TYPE(iterable), names().__getitem__))) return iterator_by_index(core_, iterable);
  if (traits.iterator) {
    return Ref::borrow(iterable);
  }
  if (traits.container == Container::none && !traits.atom && heap_.source_of(iterable)) throw GraphBreak(fmt::format("iteration over a {}", Py_TYPE(iterable)->tp_name));
  const bool many = options_.leave_loops && !of_loop && (PyList_CheckExact(iterable) || PyTuple_CheckExact(iterable)) && heap_.source_of(iterable) &&
                    static_cast<std::size_t>(PySequence_Fast_GET_SIZE(iterable)) > UnrolledLoops::kMostRounds;
  if (many) throw GraphBreak(fmt::format("C code goes over more than {} items of an older {}", UnrolledLoops::kMostRounds, Py_TYPE(iterable)->tp_name));
  if (of_loop && heap_.loose_item(iterable) == nullptr) heap_.expose_items(iterable);
  else if (heap_.loose_item(iterable) == nullptr) heap_.expose_to_walk(iterable);
  return heap_.born(checked(PyObject_GetIter(iterable)));
}

/// Of a stand-in, which is taken apart into all its items at once.
Ref Iteration::iterator_of_array(PyObject* stand_in) {
  core_.mark_position();
  require_few_items(stand_in);
  Ref iterator = heap_.adopt(checked(PyObject_GetIter(stand_in)));
  if (!options_.leave_loops || !has_more_items(stand_in, UnrolledLoops::kMostElementsPastBreak)) return iterator;
  Ref rank = checked(PyObject_GetAttrString(stand_in, "ndim"));
  if (PyLong_Check(rank.get()) && PyLong_AsLong(rank.get()) == 1) core_.loops().unrolled().goes_over_elements(iterator.get(), static_cast<std::size_t>(checked(PyObject_Size(stand_in))), heap_.now);
  return iterator;
}

void Iteration::require_few_items(PyObject* stand_in) {
  if (options_.leave_loops && has_more_items(stand_in, UnrolledLoops::kMostRounds)) UnrolledLoops::takes_apart(heap_.now);
}

Ref Iteration::counted_items(PyObject* stand_in) {
  return options_.leave_loops && has_more_items(stand_in, UnrolledLoops::kMostElementsPastBreak) ? iterator_of_array(stand_in) : Ref::borrow(stand_in);
}

/// Whether a stand-in has more items than that. Where their number varies, only this is guarded.
bool Iteration::has_more_items(PyObject* stand_in, std::size_t most) {
  Ref limit = checked(PyLong_FromSize_t(most)), count = recorder_.length(stand_in);
  if (!count) {
    const Py_ssize_t plain = PyObject_Size(stand_in);
    PyErr_Clear();  // what has no items says so when it is asked for them
    return plain > static_cast<Py_ssize_t>(most);
  }
  return checked(PyObject_RichCompareBool(count.get(), limit.get(), Py_GT)) != 0;
}

/// Empty at the end, and StopIteration is set or not, as C code leaves it.
Ref Iteration::advance(PyObject* iterator) {
  if (is_evaluated_generator(iterator)) {
    Ref result, given = core_.generators().resume(iterator, Ref::borrow(Py_None), &result);
    if (result && !result.is(Py_None)) set_stop_iteration(result.get());
    return given;
  }
  PyObject* method = heap_.type_attribute(Py_TYPE(iterator), names().__next__);
  if (is_python_function(method)) {
    try {
      return core_.call_now(method, {iterator});
    } catch (const PythonError&) {
      if (!PyErr_ExceptionMatches(PyExc_StopIteration)) throw;
      return {};
    }
  }
  if (heap_.source_of(iterator)) {
    auto [item, source] = heap_.advance(iterator);
    return item ? heap_.enter(source, item.get()) : Ref();
  }
  if (Py_TYPE(iterator)->tp_iternext == nullptr) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not an iterator", Py_TYPE(iterator)->tp_name);
    throw PythonError();
  }
  core_.mark_position();
  Ref value = step(recorder_, iterator);
  if (value) return heap_.adopt(std::move(value));
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_StopIteration)) throw_python_error();
  return {};
}

Ref Iteration::next_of(PyObject* iterator, Ref* result) {
  Ref item = advance(iterator);
  if (item || !PyErr_Occurred()) return item;
  Ref stop = compat::take_exception();
  if (result) *result = heap_.adopt(checked(PyObject_GetAttr(stop.get(), names().value)));
  return {};
}

Ref Iteration::next_or_stop(PyObject* iterator) {
  if (Ref item = advance(iterator)) return item;
  if (!PyErr_Occurred()) PyErr_SetNone(PyExc_StopIteration);
  throw PythonError();
}

void Iteration::ask_for_length(PyObject* iterable) {
  static PyObject* const name = checked(PyUnicode_InternFromString("__length_hint__")).release();
  const TypeTraits& traits = heap_.traits(iterable);
  if (!traits.python_class || traits.role != Recorder::Role::other) return;
  try {
    if (is_python_function(heap_.type_attribute(Py_TYPE(iterable), names().__len__))) {
      core_.operators().length(iterable);
      return;
    }
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw;
    PyErr_Clear();
  }
  PyObject* method = heap_.type_attribute(Py_TYPE(iterable), name);
  if (!is_python_function(method)) return;
  Ref hint;
  try {
    hint = core_.call_now(method, {iterable});
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw;
    return PyErr_Clear();
  }
  if (hint.is(Py_NotImplemented)) return;
  PyTypeObject* type = core_.visible_type(hint.get());
  if (!PyType_IsSubtype(type, &PyLong_Type)) PyErr_Format(PyExc_TypeError, "__length_hint__ must be an integer, not %.100s", type->tp_name);
  else if (PyLong_AsSsize_t(heap_.plain_key(hint.get()).get()) < 0 && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "__length_hint__() should return >= 0");
  if (PyErr_Occurred()) throw PythonError();
}

std::vector<Ref> Iteration::items_to_keep(PyObject* iterable) {
  Ref iterator = heap_.traits(iterable).python_class ? iterator_of(iterable) : Ref();
  if (!iterator) return items_of(iterable);
  ask_for_length(iterable);
  return items_of(iterator.get());
}

std::vector<Ref> Iteration::items_of(PyObject* iterable, std::size_t at_most) {
  std::vector<Ref> items;
  const TypeTraits& traits = heap_.traits(iterable);
  const bool sequence = traits.exact && (traits.container == Container::list || traits.container == Container::tuple);
  if (sequence) {
    const Py_ssize_t size = heap_.length(iterable);
    for (Py_ssize_t at = 0; at < size && items.size() < at_most; ++at) items.push_back(heap_.sequence_item(iterable, at));
    return items;
  }
  Ref iterator = iterator_of(iterable);
  while (items.size() < at_most) {
    Ref item = next_of(iterator.get());
    if (!item) break;
    items.push_back(std::move(item));
  }
  return items;
}

void Iteration::op_for_iter(Frame& f, const Instruction& i) {
  core_.loops().step_loop(f);
  Ref iterator = Ref::borrow(core_.peek(1));
  if (heap_.source_of(iterator.get()) && heap_.traits(iterator.get()).iterator) {
    auto [item, source] = heap_.advance(iterator.get());
    if (item) {
      f.stack.push_back({std::move(item), source});
    } else {
      f.stack.pop_back();
      f.next = i.target;
    }
    return;
  }
  if (Ref value = next_of(iterator.get())) {
    core_.push(std::move(value));
    return;
  }
  f.stack.pop_back();
  f.next = i.target;
}

Ref items_to_hand_on(Heap& heap, PyObject* iterable) {
  const bool of_items = PyDictItems_Check(iterable);
  const bool of_ordered = Py_TYPE(iterable) != &PyDictItems_Type && Py_TYPE(iterable) != &PyDictValues_Type;  // one of `dict` looks nothing up, and has its own order
  PyObject* dict = of_ordered && (of_items || PyDictValues_Check(iterable)) ? compat::dict_of_view(iterable) : nullptr;
  if (dict == nullptr || !heap.has_loose_keys(dict)) return Ref::borrow(iterable);
  Ref items = heap.items_of(dict);
  if (of_items) return heap.born(items);
  Ref values = checked(PyList_New(0));
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(items.get()); ++at) checked(PyList_Append(values.get(), PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), at), 1)));
  return heap.born(values);
}

void set_stop_iteration(PyObject* result) {
  if (result == nullptr || result == Py_None) return PyErr_SetNone(PyExc_StopIteration);
  Ref exception = Ref::steal(PyObject_CallOneArg(PyExc_StopIteration, result));
  if (exception) compat::set_exception(std::move(exception));
}

}  // namespace tenon::python
