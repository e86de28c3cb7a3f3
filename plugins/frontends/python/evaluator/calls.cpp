// Calls: what the callable is decides who runs it.
#include <cstring>
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "python/compat/object_layout.h"
#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/evaluator/exception_text.h"
#include "python/evaluator/generator.h"
#include "python/objects/names.h"
#include "python/objects/sequences.h"

namespace tenon::python {
namespace {

Ref positional_tuple(const Arguments& arguments) {
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(arguments.positional())));
  for (std::size_t at = 0; at < arguments.positional(); ++at) PyTuple_SET_ITEM(tuple.get(), at, Ref(arguments.values[at]).release());
  return tuple;
}

Ref named_dict(const Arguments& arguments) {
  if (arguments.named() == 0) return {};
  Ref dict = checked(PyDict_New());
  for (std::size_t at = 0; at < arguments.named(); ++at)
    checked(PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(arguments.names.get(), at), arguments.values[arguments.positional() + at].get()));
  return dict;
}

}  // namespace

void Evaluator::mark_position() {
  if (frames_.empty()) return;
  const Frame& f = *frames_.back();
  recorder_.position = {f.code->code(), 2 * f.instruction().unit};
}

bool Evaluator::recorder_takes(PyObject* callable) {
  // A method of a ufunc is a new object at each access.
  if (PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr; self && !heap_.is_born(self) && std::strcmp(Py_TYPE(self)->tp_name, "numpy.ufunc") == 0)
    return recorder_.takes(callable);
  auto [entry, fresh] = takes_.try_emplace(callable, false);
  if (fresh && !heap_.is_born(callable)) entry->second = recorder_.takes(callable);
  return entry->second;
}

/// Breaks where a call of a library has given more arrays than are written out.
void Evaluator::require_few_pieces(PyObject* result) {
  if (!options_.leave_loops || (!PyList_CheckExact(result) && !PyTuple_CheckExact(result))) return;
  const bool many = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(result)) > UnrolledLoops::kMostRounds;
  if (many && is_stand_in(PySequence_Fast_GET_ITEM(result, 0))) UnrolledLoops::takes_apart(heap_.now);
}

Ref Evaluator::call_real(PyObject* callable, const Arguments& arguments) {
  mark_position();
  std::vector<PyObject*> values;
  values.reserve(arguments.values.size() + 1);
  values.push_back(nullptr);  // room for a self, which vectorcall may use
  for (const Ref& value : arguments.values) values.push_back(value.get());
  PyObject* result = PyObject_Vectorcall(callable, values.data() + 1, arguments.positional() | PY_VECTORCALL_ARGUMENTS_OFFSET, arguments.names.get());
  // A float or an int might have been taken.
  const auto stands_for_number = [&](const Ref& value) { return heap_.traits(value.get()).role == Recorder::Role::number; };
  if (!result && PyErr_ExceptionMatches(PyExc_TypeError)) {
    Ref raised = compat::take_exception();  // out of the way of what looks at types
    if (std::ranges::any_of(arguments.values, stands_for_number)) throw GraphBreak("C code does not take what stands for a number");
    compat::set_exception(std::move(raised));
  }
  Ref given = checked(result);
  const bool of_array = PyCFunction_Check(callable) && PyCFunction_GET_SELF(callable) != nullptr && is_stand_in(PyCFunction_GET_SELF(callable));
  if (of_array) require_few_pieces(given.get());
  return given;
}

namespace {

/// Whether lists or tuples are nested more deeply, as those that hold themselves are. The recorder follows them to their items.
bool is_deeper_than(int levels, PyObject* value) {
  if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value)) return false;
  if (levels == 0) return true;
  for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(value); ++at)
    if (is_deeper_than(levels - 1, PySequence_Fast_GET_ITEM(value, at))) return true;
  return false;
}

}  // namespace

namespace {

/// Whether an older list or tuple holds a few numbers and nothing else, as sizes and factors do: each may vary.
bool is_older_numbers(const Heap& heap, PyObject* object) {
  constexpr Py_ssize_t kMost = 16;
  if (!(PyTuple_CheckExact(object) || PyList_CheckExact(object)) || !heap.source_of(object)) return false;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  for (Py_ssize_t at = 0; at < size; ++at)
    if (PyObject* item = PySequence_Fast_GET_ITEM(object, at); !PyLong_CheckExact(item) && !PyFloat_CheckExact(item)) return false;
  return size > 0 && size <= kMost;
}

}  // namespace

/// Whether it is an older list or tuple of a few numbers, each of which may vary by itself.
bool Evaluator::holds_older_numbers(PyObject* value) const {
  constexpr Py_ssize_t kMost = 16;
  if ((!PyTuple_CheckExact(value) && !PyList_CheckExact(value)) || !heap_.source_of(value) || PySequence_Fast_GET_SIZE(value) > kMost) return false;
  const std::span<PyObject*> items(PySequence_Fast_ITEMS(value), static_cast<std::size_t>(PySequence_Fast_GET_SIZE(value)));
  return std::ranges::any_of(items, [](PyObject* item) { return PyLong_CheckExact(item) || PyFloat_CheckExact(item); });
}

/// An older list or tuple of a few numbers that C code is going to read, as one of the numbers as the program reads them; others as they are.
Ref Evaluator::with_numbers_read(PyObject* value) {
  if (!holds_older_numbers(value)) return Ref::borrow(value);
  std::vector<Ref> items = items_of(value);
  return heap_.born(PyTuple_CheckExact(value) ? tuple_of(std::move(items)) : list_of(std::move(items)));
}

/// A list or tuple that an operation takes whole, with the numbers read one by one that are in it, or in older ones inside of it.
Ref Evaluator::with_items_read(PyObject* value) {
  const bool older = is_older_numbers(heap_, value);
  const bool born = !older && (PyTuple_CheckExact(value) || PyList_CheckExact(value)) && !heap_.source_of(value);
  std::vector<Ref> items;
  bool any = older;
  if (older) items = items_of(value);
  for (Py_ssize_t at = 0; born && at < PySequence_Fast_GET_SIZE(value); ++at) {
    PyObject* item = PySequence_Fast_GET_ITEM(value, at);
    const bool reads = is_older_numbers(heap_, item);
    items.push_back(reads ? with_items_read(item) : Ref::borrow(item));
    any |= reads;
  }
  if (!any) return Ref::borrow(value);
  return PyTuple_CheckExact(value) ? tuple_of(std::move(items)) : list_of(std::move(items));
}

/// NumPy's functions leave the work to a method of their name, and ask what is no array for its shape: so of a tuple with fields.
void Evaluator::require_no_method_of_name(PyObject* callable, PyObject* value) {
  const TypeTraits& traits = heap_.traits(value);
  if (!traits.python_class || traits.exact || traits.container == Container::none) return;
  static PyObject* const asked[] = {checked(PyUnicode_InternFromString("shape")).release(), checked(PyUnicode_InternFromString("ndim")).release(), checked(PyUnicode_InternFromString("size")).release(),
                                    checked(PyUnicode_InternFromString("dtype")).release()};
  Ref own = Ref::steal(PyObject_GetAttr(callable, names().__name__));
  PyErr_Clear();
  const auto look_for = [&](PyObject* name) {
    PyObject* found = heap_.type_attribute(Py_TYPE(value), name);
    if (found != nullptr && Py_TYPE(found) != &PyMethodDescr_Type) throw GraphBreak(fmt::format("a library's function is given a {}, which has a '{}'", Py_TYPE(value)->tp_name, name_text(name)));
  };
  for (PyObject* name : asked) look_for(name);
  if (own && PyUnicode_Check(own.get())) look_for(own.get());
}

Ref Evaluator::call_recorder(PyObject* callable, const Arguments& arguments) {
  constexpr int kDeepest = 64;  // levels; no tensor has as many dimensions
  ++recorded_;
  Arguments seen;
  seen.names = arguments.names;
  for (const Ref& value : arguments.values) {
    Ref given = value;
    require_no_hooks(given.get());
    require_no_method_of_name(callable, given.get());
    if (is_evaluated_generator(value.get()) || heap_.traits(value.get()).iterator) {
      // A function in C takes an iterator for an object that it does not know.
      if (!PyFunction_Check(callable)) throw GraphBreak(fmt::format("a library's function is given a {}", visible_type(value.get())->tp_name));
      given = checked(PyList_New(0));
      for (const Ref& item : items_of(value.get())) checked(PyList_Append(given.get(), item.get()));
    }
    given = with_items_read(given.get());
    if (is_deeper_than(kDeepest, given.get())) throw GraphBreak("an operation takes a list that is nested too deeply");
    heap_.expose(given.get());
    if (Py_TYPE(given.get())->tp_iter != nullptr || Py_TYPE(given.get())->tp_as_buffer != nullptr) require_readable(given.get());
    seen.values.push_back(heap_.substitute(given.get()));
  }
  mark_position();
  require_few_pieces_of(callable, seen);
  try {
    Ref result = recorder_.call(callable, positional_tuple(seen).get(), named_dict(seen).get());
    require_few_pieces(result.get());
    return heap_.adopt(std::move(result));
  } catch (const PythonError&) {
    // What the operation itself would raise may differ from what the stand-in raises: let the real one decide.
    throw GraphBreak("an operation raises " + type_and_text(compat::take_exception().get()));
  }
}

/// Whether a frame holds the object, which then lives.
bool Evaluator::is_held(PyObject* object) const {
  const auto holds = [&](const Slot& slot) { return slot.object.is(object); };
  return std::ranges::any_of(frames_, [&](const auto& frame) { return std::ranges::any_of(frame->locals, holds) || std::ranges::any_of(frame->stack, holds); });
}

std::optional<Ref> Evaluator::call(PyObject* callable, Arguments arguments, Completion completion) {
  if (PyFunction_Check(callable)) return call_function(callable, std::move(arguments), completion);
  if (PyMethod_Check(callable)) {
    Ref function = heap_.part(SourceKind::method_function, callable, PyMethod_GET_FUNCTION(callable));
    Ref self = heap_.part(SourceKind::method_self, callable, PyMethod_GET_SELF(callable));
    const bool of_program = PyFunction_Check(function.get()) && !recorder_.is_own(function.get());
    if (is_stand_in(self.get()) && !of_program && !recorder_takes(function.get())) {
      // A Python method of a tensor class: it finds the stand-in's own hooks.
      for (Ref& value : arguments.values) {
        heap_.expose(value.get());
        value = heap_.substitute(value.get());
      }
      Ref bound = checked(PyMethod_New(function.get(), self.get()));
      return heap_.adopt(call_real(bound.get(), arguments));
    }
    arguments.values.insert(arguments.values.begin(), std::move(self));
    return call(function.get(), std::move(arguments), completion);
  }
  if (PyType_Check(callable)) return construct(reinterpret_cast<PyTypeObject*>(callable), std::move(arguments), completion);
  PyTypeObject* type = Py_TYPE(callable);
  if (type == library_types().partial) {
    Ref function = load_attribute(callable, names().func);
    Ref first = load_attribute(callable, names().args), named = load_attribute(callable, names().keywords);
    Arguments all;
    for (Ref& item : items_of(first.get())) all.values.push_back(std::move(item));
    for (std::size_t at = 0; at < arguments.positional(); ++at) all.values.push_back(arguments.values[at]);
    heap_.expose(named.get());
    Ref merged = checked(PyDict_Copy(named.get()));
    for (std::size_t at = 0; at < arguments.named(); ++at)
      checked(PyDict_SetItem(merged.get(), PyTuple_GET_ITEM(arguments.names.get(), at), arguments.values[arguments.positional() + at].get()));
    Ref keys = checked(PySequence_Tuple(merged.get()));
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(keys.get()); ++at)
      all.values.push_back(heap_.adopt(Ref::borrow(PyDict_GetItem(merged.get(), PyTuple_GET_ITEM(keys.get(), at)))));
    if (PyTuple_GET_SIZE(keys.get()) > 0) all.names = std::move(keys);
    return call(function.get(), std::move(all), completion);
  }
  if (type == library_types().lru_cache) {
    return call_cached(callable, std::move(arguments));
  }
  if (PyObject* function = recorder_.written_in_python(callable)) return call_function(function, std::move(arguments), completion);
  if (is_getter(callable)) return call_getter(*this, callable, arguments);
  if (PyObject* wrapped = compiled_function_inside(callable)) {
    if (!heap_.source_of(wrapped) && !heap_.is_born(wrapped)) heap_.make_known(wrapped, heap_.sources().constant(wrapped));
    return call(wrapped, std::move(arguments), completion);
  }
  if (is_builtin_callable(callable)) return call_builtin(callable, std::move(arguments), completion);
  if (recorder_takes(callable)) return call_recorder(callable, arguments);
  PyObject* method = heap_.type_attribute(type, names().__call__);
  if (is_python_function(method)) {
    arguments.values.insert(arguments.values.begin(), Ref::borrow(callable));
    return call(method, std::move(arguments), completion);
  }
  if (PyWeakref_CheckRef(callable)) {
    PyObject* target = PyWeakref_GET_OBJECT(callable);
    const bool born = heap_.is_born(callable) && !heap_.source_of(callable);
    if (target == Py_None && born) return Ref::borrow(Py_None);
    if (target == Py_None) throw GraphBreak("a dead weak reference");
    Ref found = heap_.part(SourceKind::called, callable, target);
    // What has been taken out of older objects is still there, for the rollback.
    if (!heap_.is_born(target) && !heap_.journal().empty() && !is_held(found.get())) throw GraphBreak("a weak reference is followed after older objects were changed");
    return found;
  }
  if (heap_.is_born(callable) && is_pure_callable(type)) {
    for (const Ref& value : arguments.values) {
      heap_.expose(value.get());
      require_plain(value.get());
    }
    return heap_.adopt(call_real(callable, arguments));
  }
  throw GraphBreak(fmt::format("a call of a {}", type->tp_name));
}

void Evaluator::op_call(Frame& f, int count, Ref given_names) {
  Arguments arguments;
  arguments.names = given_names && PyTuple_GET_SIZE(given_names.get()) > 0 ? std::move(given_names) : Ref();
  arguments.values = pop_many(count);
  // Below the arguments: callable and self in either order, with a null where there is no self.
  Slot upper = pop_slot(), lower = pop_slot();
  Ref callable;
  if (!lower.object) {
    callable = force(std::move(upper));
  } else if (!upper.object) {
    callable = force(std::move(lower));
  } else {
    callable = force(std::move(lower));
    arguments.values.insert(arguments.values.begin(), force(std::move(upper)));
  }
  (void)f;
  if (std::optional<Ref> result = call(callable.get(), std::move(arguments))) push(std::move(*result));
}

void Evaluator::op_call_function_ex(Frame& f, const Instruction& i) {
  Ref named = i.arg & 1 ? pop() : Ref();
  Ref positional = pop();
  Slot upper = pop_slot(), lower = pop_slot();
  Ref callable = force(upper.object ? std::move(upper) : std::move(lower));
  Arguments arguments;
  if (!may_be_iterated(positional.get())) throw GraphBreak("an argument after '*' is no iterable");
  arguments.values = items_of(positional.get());
  if (named) {
    if (heap_.traits(named.get()).container != Container::dict) throw GraphBreak(fmt::format("'**' of a {}", Py_TYPE(named.get())->tp_name));
    heap_.expose_keys(named.get());
    Ref keys = checked(PySequence_Tuple(named.get()));
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(keys.get()); ++at) {
      if (!PyUnicode_Check(PyTuple_GET_ITEM(keys.get(), at))) throw GraphBreak("'**' of a dict with keys that are no strings");
      arguments.values.push_back(heap_.dict_item(named.get(), PyTuple_GET_ITEM(keys.get(), at)));
    }
    if (PyTuple_GET_SIZE(keys.get()) > 0) arguments.names = std::move(keys);
  }
  (void)f;
  if (std::optional<Ref> result = call(callable.get(), std::move(arguments))) push(std::move(*result));
}

}  // namespace tenon::python
