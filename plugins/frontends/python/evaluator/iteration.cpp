// Iterators: made, advanced, exhausted.
#include <fmt/format.h>

#include "python/builtins/table.h"
#include "python/evaluator/evaluator.h"
#include "python/evaluator/generator.h"
#include "python/heap/names.h"

namespace tenon::python {

Ref Evaluator::iterator_of(PyObject* iterable, bool of_loop) {
  if (Ref mapping = heap_.behind_proxy(iterable)) return iterator_of(mapping.get(), of_loop);
  const TypeTraits& traits = heap_.traits(iterable);
  if (traits.role == Recorder::Role::stand_in) {
    mark_position();
    return heap_.adopt(checked(PyObject_GetIter(iterable)));
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
  if (of_loop) heap_.expose_items(iterable);
  else heap_.expose(iterable);
  return heap_.born(checked(PyObject_GetIter(iterable)));
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

void Evaluator::op_for_iter(Frame& f, const Instruction& i) {
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
