#include "python/evaluator/cached_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/compat/result_cache.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// Calls the cache of `self`, a tuple (cache, positional arguments, those by name), as the program has called it. With an argument, that is what
/// the cached function gives where it is called.
PyObject* call_again(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  PyObject *cache = PyTuple_GET_ITEM(self, 0), *positional = PyTuple_GET_ITEM(self, 1);
  PyObject* named = PyTuple_GET_ITEM(self, 2) == Py_None ? nullptr : PyTuple_GET_ITEM(self, 2);
  try {
    if (count == 0) return PyObject_Call(cache, positional, named);
    compat::call_cache_giving(cache, positional, named, given[0]);
    return Py_NewRef(Py_None);
  } catch (const PythonError&) {
    return nullptr;
  }
}
PyMethodDef kCallAgain = {"call_again", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_again)), METH_FASTCALL, nullptr};

/// An argument as the cache keeps it, which is found again by its value or because it is the same object at every call.
Ref part_of_key(Evaluator& evaluator, PyObject* value) {
  Heap& heap = evaluator.heap();
  if (heap.is_number(value)) return heap.plain_key(value);
  if (PyTuple_CheckExact(value)) {
    Ref items = checked(PyTuple_New(PyTuple_GET_SIZE(value)));
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(value); ++at) PyTuple_SET_ITEM(items.get(), at, part_of_key(evaluator, PyTuple_GET_ITEM(value, at)).release());
    return items;
  }
  const TypeTraits& traits = heap.traits(value);
  PyObject* object = evaluator.is_stand_in(value) ? heap.real_of(value) : value;
  const bool same = object != nullptr && (traits.identity ? !heap.is_born(object) : heap.source_of(object) && !evaluator.equality().has_python_hash(object) && !evaluator.equality().has_python_equality(object) &&
                                                                                        (object != value || traits.container == Container::none));
  if (!traits.atom && !same) throw GraphBreak(fmt::format("a cached function is called with a {}", evaluator.visible_type(value)->tp_name));
  if (!traits.atom) evaluator.equality().prepare_hash(value);
  return Ref::borrow(object);
}

}  // namespace

/// One call of a cache that is older than the capture.
struct CachedCalls::Call {
  PyObject* cache;
  Ref positional, named;  // the real arguments; those by name a dict, or empty
  Ref key;

  Ref again() const {
    Ref parts = checked(PyTuple_Pack(3, cache, positional.get(), named ? named.get() : Py_None));
    return checked(PyCFunction_New(&kCallAgain, parts.get()));
  }
};

Ref CachedCalls::call(PyObject* callable, Arguments arguments) {
  if (heap_.is_born(callable) && !heap_.source_of(callable)) {  // it keeps its own books, and calls back
    for (Ref& value : arguments.values) {
      core_.equality().prepare_hash(value.get());
      value = heap_.plain_key(value.get());
    }
    return heap_.adopt(core_.calls().call_real(callable, arguments));
  }
  PyObject* function = compat::function_of_cache(callable);
  if (function == nullptr) throw GraphBreak("a call of what functools.lru_cache made, on a CPython that keeps its books elsewhere");
  Call call{callable, checked(PyTuple_New(static_cast<Py_ssize_t>(arguments.positional()))), {}, {}};
  for (std::size_t at = 0; at < arguments.positional(); ++at) PyTuple_SET_ITEM(call.positional.get(), static_cast<Py_ssize_t>(at), part_of_key(core_, arguments[at]).release());
  if (arguments.named() > 0) call.named = checked(PyDict_New());
  for (std::size_t at = 0; at < arguments.named(); ++at)
    checked(PyDict_SetItem(call.named.get(), PyTuple_GET_ITEM(arguments.names.get(), static_cast<Py_ssize_t>(at)), part_of_key(core_, arguments[arguments.positional() + at]).get()));
  call.key = compat::key_in_cache(callable, call.positional.get(), call.named.get());
  heap_.require_no_branch("a cached function is called");
  if (const Ref known = known_result(call)) return call_known(call, known);
  if (PyObject* held = compat::result_in_cache(callable, call.key.get())) return take_from_cache(call, held);
  return fill_cache(call, function, std::move(arguments));
}

/// (result, whether it is fixed) of what the capture itself has taken from the cache, or given to it; empty for anything else.
Ref CachedCalls::known_result(const Call& call) const {
  if (!cached_) return {};
  PyObject* found = PyDict_GetItemWithError(cached_.get(), checked(PyTuple_Pack(2, call.cache, call.key.get())).get());
  if (found == nullptr && PyErr_Occurred()) throw_python_error();
  return Ref::borrow(found);
}

Ref CachedCalls::call_known(const Call& call, const Ref& known) {
  PyObject *value = PyTuple_GET_ITEM(known.get(), 0), *fixed = PyTuple_GET_ITEM(known.get(), 1);
  if (fixed == Py_True) {
    heap_.journal().add(WriteKind::call, {Ref::borrow(value)}, call.again());
    return Ref::borrow(value);
  }
  require_nothing_dropped(call.cache);
  heap_.journal().add(WriteKind::call, {}, call.again());
  return Ref::borrow(value);
}

Ref CachedCalls::take_from_cache(const Call& call, PyObject* held) {
  require_nothing_dropped(call.cache);
  const SourceId cache = heap_.sources().constant(call.cache);
  Ref value = heap_.enter(heap_.sources().keyed(SourceKind::cached_result, cache, call.key.get()), held);
  heap_.journal().add(WriteKind::call, {}, call.again());
  note_cached(call, value, false);
  return value;
}

Ref CachedCalls::fill_cache(const Call& call, PyObject* function, Arguments arguments) {
  const Py_ssize_t limit = compat::size_limit_of_cache(call.cache);
  const std::size_t recorded = core_.calls().recorded(), journalled = heap_.journal().size();
  const Heap::NotedWrites written(heap_);
  heap_.make_known(function, heap_.sources().constant(function));
  Ref result;
  try {
    result = core_.call_now(function, std::move(arguments));
  } catch (const PythonError&) {
    compat::take_exception();
    throw GraphBreak("a cached function raises");
  }
  // Of a function that did nothing else it is all one whether it runs: its result is the same while what it read is the same.
  const TypeTraits& traits = heap_.traits(result.get());
  const bool fixed = traits.atom && !heap_.is_number(result.get()) && core_.calls().recorded() == recorded && heap_.journal().size() == journalled && !written.any() && !PyTuple_Check(result.get());
  if (!fixed && limit != 0) require_nothing_dropped(call.cache);
  if (limit != 0) {
    Ref expected = fixed ? checked(PyTuple_Pack(2, call.key.get(), result.get())) : checked(PyTuple_Pack(1, call.key.get()));
    heap_.guards().add(GuardKind::cached_result, heap_.sources().constant(call.cache), expected.get());
  }
  heap_.journal().add(WriteKind::call, {result}, call.again());
  if (limit > 0) filled_caches_.insert(call.cache);
  if (limit != 0) note_cached(call, result, fixed);
  return result;
}

void CachedCalls::note_cached(const Call& call, const Ref& value, bool fixed) {
  if (!cached_) cached_ = checked(PyDict_New());
  Ref key = checked(PyTuple_Pack(2, call.cache, call.key.get())), known = checked(PyTuple_Pack(2, value.get(), fixed ? Py_True : Py_False));
  checked(PyDict_SetItem(cached_.get(), key.get(), known.get()));
}

/// A cache that has a limit and got another result may have dropped what is asked for.
void CachedCalls::require_nothing_dropped(PyObject* cache) {
  if (filled_caches_.contains(cache)) throw GraphBreak("a cache of a limited size, which has got another result, is asked for one");
}

}  // namespace tenon::python
