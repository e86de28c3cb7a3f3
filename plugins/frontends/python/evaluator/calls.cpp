// Calls: what the callable is decides who runs it.
#include <cstring>
#include <fmt/format.h>

#include <algorithm>

#include "python/builtins/table.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/evaluator/exception_text.h"
#include "python/evaluator/generator.h"
#include "python/heap/names.h"
#include "python/heap/sequences.h"

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
  return checked(result);
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

/// Whether an older list or tuple holds a few ints and nothing else, as sizes do: each may vary.
bool is_older_ints(const Heap& heap, PyObject* object) {
  constexpr Py_ssize_t kMost = 16;
  if (!(PyTuple_CheckExact(object) || PyList_CheckExact(object)) || !heap.source_of(object)) return false;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  for (Py_ssize_t at = 0; at < size; ++at)
    if (!PyLong_CheckExact(PySequence_Fast_GET_ITEM(object, at))) return false;
  return size > 0 && size <= kMost;
}

}  // namespace

/// A list or tuple that an operation takes whole, with the ints read one by one that are in it, or in older ones inside of it.
Ref Evaluator::with_ints_read(PyObject* value) {
  const bool older = is_older_ints(heap_, value);
  const bool born = !older && (PyTuple_CheckExact(value) || PyList_CheckExact(value)) && !heap_.source_of(value);
  std::vector<Ref> items;
  bool any = older;
  if (older) items = items_of(value);
  for (Py_ssize_t at = 0; born && at < PySequence_Fast_GET_SIZE(value); ++at) {
    PyObject* item = PySequence_Fast_GET_ITEM(value, at);
    const bool reads = is_older_ints(heap_, item);
    items.push_back(reads ? with_ints_read(item) : Ref::borrow(item));
    any |= reads;
  }
  if (!any) return Ref::borrow(value);
  return PyTuple_CheckExact(value) ? tuple_of(std::move(items)) : list_of(std::move(items));
}

Ref Evaluator::call_recorder(PyObject* callable, const Arguments& arguments) {
  constexpr int kDeepest = 64;  // levels; no tensor has as many dimensions
  ++recorded_;
  Arguments seen;
  seen.names = arguments.names;
  for (const Ref& value : arguments.values) {
    Ref given = value;
    require_no_hooks(given.get());
    if (is_evaluated_generator(value.get()) || heap_.traits(value.get()).iterator) {
      given = checked(PyList_New(0));
      for (const Ref& item : items_of(value.get())) checked(PyList_Append(given.get(), item.get()));
    }
    given = with_ints_read(given.get());
    if (is_deeper_than(kDeepest, given.get())) throw GraphBreak("an operation takes a list that is nested too deeply");
    heap_.expose(given.get());
    if (Py_TYPE(given.get())->tp_iter != nullptr || Py_TYPE(given.get())->tp_as_buffer != nullptr) require_readable(given.get());
    seen.values.push_back(heap_.substitute(given.get()));
  }
  mark_position();
  try {
    return heap_.adopt(recorder_.call(callable, positional_tuple(seen).get(), named_dict(seen).get()));
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
    if (is_stand_in(self.get()) && !recorder_takes(function.get())) {
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

namespace {

constexpr Py_ssize_t kMostBrokenCalls = 1000;

/// The calls of cached functions, by callable and arguments, that broke a graph: each was then made for real, and is in its cache.
PyObject* broken_calls() {
  static PyObject* const calls = checked(PySet_New(nullptr)).release();
  return calls;
}

bool has_broken(PyObject* call) { return PySet_GET_SIZE(broken_calls()) > 0 && checked(PySet_Contains(broken_calls(), call)) != 0; }

bool is_plain_key(PyObject* item) {
  if (!PyTuple_CheckExact(item)) return item == Py_None || PyUnicode_CheckExact(item) || PyLong_CheckExact(item) || PyBool_Check(item) || PyType_Check(item);
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(item); ++at)
    if (!is_plain_key(PyTuple_GET_ITEM(item, at))) return false;
  return true;
}

void note_break(PyObject* call) {
  if (PySet_GET_SIZE(broken_calls()) < kMostBrokenCalls && is_plain_key(PyTuple_GET_ITEM(call, 1)) && is_plain_key(PyTuple_GET_ITEM(call, 2)))
    checked(PySet_Add(broken_calls(), call));
}

/// What a functools.lru_cache keeps a result under: one int or str as it is, so that it is not taken for a float or bool that equals it.
PyObject* cache_key(PyObject* positional) {
  PyObject* only = PyTuple_GET_SIZE(positional) == 1 ? PyTuple_GET_ITEM(positional, 0) : nullptr;
  return only != nullptr && (PyUnicode_CheckExact(only) || PyLong_CheckExact(only)) ? only : positional;
}

/// Whether a functools.lru_cache holds a result for these arguments, so that it makes no call for them.
bool holds_result(PyObject* cached, PyObject* positional) {
  struct Search {
    PyObject *attributes, *results;
  } search{compat::instance_dict(cached), nullptr};
  const visitproc visit = [](PyObject* held, void* argument) {
    Search& found = *static_cast<Search*>(argument);
    if (PyDict_CheckExact(held) && held != found.attributes) found.results = held;  // what it has given comes before the dict of it
    return 0;
  };
  Py_TYPE(cached)->tp_traverse(cached, visit, &search);
  return search.results != nullptr && checked(PyDict_Contains(search.results, cache_key(positional))) != 0;
}

}  // namespace

/// functools.lru_cache: the function below is evaluated once a capture and key. A cache that is new keeps its own books, and calls back.
Ref Evaluator::call_cached(PyObject* callable, Arguments arguments) {
  for (const Ref& value : arguments.values) prepare_hash(value.get());
  if (heap_.is_born(callable) && !heap_.source_of(callable)) {
    for (Ref& value : arguments.values) value = heap_.plain_key(value.get());
    return heap_.adopt(call_real(callable, arguments));
  }
  Ref function = checked(PyObject_GetAttr(callable, names().__wrapped__));
  heap_.make_known(function.get(), heap_.sources().constant(function.get()));
  Ref named = named_dict(arguments), positional = positional_tuple(arguments);
  Ref items = named ? checked(PySequence_Tuple(checked(PyDict_Items(named.get())).get())) : Ref::borrow(Py_None);
  Ref key = checked(PyTuple_Pack(3, callable, named ? positional.get() : cache_key(positional.get()), items.get()));
  if (!cached_) cached_ = checked(PyDict_New());
  if (PyObject* found = PyDict_GetItemWithError(cached_.get(), key.get())) return Ref::borrow(found);
  if (PyErr_Occurred()) throw_python_error();
  const std::size_t recorded = recorded_;
  if (!named && has_broken(key.get()) && holds_result(callable, positional.get())) return kept_by_cache(callable, arguments);
  Ref result;
  try {
    const Heap::NoWrites once(heap_, "a cached function");  // later calls do without it
    result = call_now(function.get(), arguments);
  } catch (const GraphBreak&) {
    note_break(key.get());
    throw;
  }
  const TypeTraits& traits = heap_.traits(result.get());
  const bool lasts = traits.atom || traits.identity || traits.container == Container::tuple || heap_.source_of(result.get());
  if (recorded_ != recorded) throw GraphBreak("a cached function computes what is kept for later calls");
  if (!lasts) result = kept_by_cache(callable, arguments);
  checked(PyDict_SetItem(cached_.get(), key.get(), result.get()));
  return result;
}

/// The object that Python gives at each call, for arguments with which evaluation has shown that making it does nothing else.
Ref Evaluator::kept_by_cache(PyObject* callable, const Arguments& arguments) {
  for (const Ref& value : arguments.values) {
    heap_.expose(value.get());
    require_plain(value.get());
  }
  Ref kept = call_real(callable, arguments);
  heap_.make_known(kept.get(), heap_.sources().constant(kept.get()));
  return kept;
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
    heap_.expose(named.get());
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
