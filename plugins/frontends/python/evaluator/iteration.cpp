// Iterators: made, advanced, exhausted.
#include <fmt/format.h>

#include <algorithm>

#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/evaluator/generator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// Whether an instruction begins a loop over what the one before it gives.
bool begins_loop(const Frame& f, int instruction) { return f.code->instructions[instruction].op == Op::for_iter; }

}  // namespace

Ref Evaluator::iterator_of(PyObject* iterable, bool of_loop) {
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
    Ref iterator = call_now(method, {iterable});
    if (PyIter_Check(iterator.get())) return iterator;
    PyErr_Format(PyExc_TypeError, "iter() returned non-iterator of type '%.100s'", visible_type(iterator.get())->tp_name);
    throw PythonError();
  }
  if (method == nullptr && traits.python_class && is_python_function(heap_.type_attribute(Py_TYPE(iterable), names().__getitem__))) return iterator_by_index(*this, iterable);
  if (traits.iterator) {
    return Ref::borrow(iterable);
  }
  if (traits.container == Container::none && !traits.atom && heap_.source_of(iterable)) throw GraphBreak(fmt::format("iteration over a {}", Py_TYPE(iterable)->tp_name));
  const bool many = options_.leave_loops && !of_loop && (PyList_CheckExact(iterable) || PyTuple_CheckExact(iterable)) && heap_.source_of(iterable) &&
                    static_cast<std::size_t>(PySequence_Fast_GET_SIZE(iterable)) > UnrolledLoops::kMostRounds;
  if (many) throw GraphBreak(fmt::format("C code goes over more than {} items of an older {}", UnrolledLoops::kMostRounds, Py_TYPE(iterable)->tp_name));
  if (of_loop && heap_.loose_item(iterable) == nullptr) heap_.expose_items(iterable);
  else if (heap_.loose_item(iterable) == nullptr) heap_.expose(iterable);
  return heap_.born(checked(PyObject_GetIter(iterable)));
}

/// Of a stand-in, which is taken apart into all its items at once.
Ref Evaluator::iterator_of_array(PyObject* stand_in) {
  mark_position();
  require_few_items(stand_in);
  Ref iterator = heap_.adopt(checked(PyObject_GetIter(stand_in)));
  if (!options_.leave_loops || !has_more_items(stand_in, UnrolledLoops::kMostElementsPastBreak)) return iterator;
  Ref rank = checked(PyObject_GetAttrString(stand_in, "ndim"));
  if (PyLong_Check(rank.get()) && PyLong_AsLong(rank.get()) == 1) loops_.goes_over_elements(iterator.get(), static_cast<std::size_t>(checked(PyObject_Size(stand_in))), heap_.now);
  return iterator;
}

void Evaluator::require_few_items(PyObject* stand_in) {
  if (options_.leave_loops && has_more_items(stand_in, UnrolledLoops::kMostRounds)) UnrolledLoops::takes_apart(heap_.now);
}

Ref Evaluator::counted_items(PyObject* stand_in) {
  return options_.leave_loops && has_more_items(stand_in, UnrolledLoops::kMostElementsPastBreak) ? iterator_of_array(stand_in) : Ref::borrow(stand_in);
}

/// Whether a stand-in has more items than that. Where their number varies, only this is guarded.
bool Evaluator::has_more_items(PyObject* stand_in, std::size_t most) {
  Ref limit = checked(PyLong_FromSize_t(most)), count = recorder_.length(stand_in);
  if (!count) {
    const Py_ssize_t plain = PyObject_Size(stand_in);
    PyErr_Clear();  // what has no items says so when it is asked for them
    return plain > static_cast<Py_ssize_t>(most);
  }
  return checked(PyObject_RichCompareBool(count.get(), limit.get(), Py_GT)) != 0;
}

Ref Evaluator::next_of(PyObject* iterator, Ref* result) {
  if (is_evaluated_generator(iterator)) return resume_generator(iterator, Ref::borrow(Py_None), result);
  PyObject* method = heap_.type_attribute(Py_TYPE(iterator), names().__next__);
  if (is_python_function(method)) {
    try {
      return call_now(method, {iterator});
    } catch (const PythonError&) {
      if (!PyErr_ExceptionMatches(PyExc_StopIteration)) throw;
      PyErr_Clear();
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
  mark_position();
  Ref value = Ref::steal(Py_TYPE(iterator)->tp_iternext(iterator));
  if (value) return heap_.adopt(std::move(value));
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) throw_python_error();
    PyErr_Clear();
  }
  return {};
}

std::vector<Ref> Evaluator::items_of(PyObject* iterable, std::size_t at_most) {
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

/// Ends the capture before a loop over a sequence, older than the call, that has made a variant after the other. Nothing of it is guarded.
void Evaluator::step_over_varying(const Frame& f) {
  if (!options_.stepped) return;
  const Slot& slot = f.stack.back();
  const SourceId source = slot.pending ? slot.pending : heap_.source_of(slot.object.get());
  PyObject* over = slot.object.get();
  if (!source || (!PyRange_Check(over) && !PyList_CheckExact(over) && !PyTuple_CheckExact(over))) return;
  const bool stepped = begins_loop(f, f.next) && options_.stepped->contains(f.code->object.get(), f.next);
  if (!stepped && !recorder_.items_keep_varying(source, heap_.guards())) return;
  if (begins_loop(f, f.next)) options_.stepped->add(f.code->object.get(), f.next);
  throw SteppedLoop(begins_loop(f, f.next) && options_.stepped->is_left(f.code->object.get(), f.next));
}

/// The same before `range(...)` of a loop whose number of rounds varies.
void Evaluator::step_over_varying_range(std::span<const Ref> bounds) {
  const Frame& f = frame();
  if (!options_.stepped || nested_ > 1 || f.instruction().op != Op::call || f.code->instructions[f.next].op != Op::get_iter || !begins_loop(f, f.next + 1)) return;
  PyObject* code = f.code->object.get();
  if (!options_.stepped->contains(code, f.next + 1) && !recorder_.rounds_keep_varying(bounds)) return;
  if (std::ranges::none_of(bounds, [&](const Ref& bound) { return heap_.is_number(bound.get()); })) return;
  options_.stepped->add(code, f.next + 1);
  throw SteppedLoop(options_.stepped->is_left(code, f.next + 1));
}

void Evaluator::step_loop(const Frame& f) {
  if (!options_.stepped) return;
  PyObject* code = f.code->object.get();
  const SourceId source = heap_.source_of(f.stack.back().object.get());
  const SourceId older = f.stack.back().pending ? f.stack.back().pending : source;
  if (older && recorder_.items_keep_varying(older, heap_.guards())) options_.stepped->add(code, f.current);
  if (options_.stepped->contains(code, f.current)) throw SteppedLoop(options_.stepped->is_left(code, f.current));
}

void Evaluator::op_for_iter(Frame& f, const Instruction& i) {
  step_loop(f);
  Ref iterator = Ref::borrow(peek(1));
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
    push(std::move(value));
    return;
  }
  f.stack.pop_back();
  f.next = i.target;
}

}  // namespace tenon::python
