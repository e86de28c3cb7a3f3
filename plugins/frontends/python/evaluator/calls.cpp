#include "python/evaluator/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "python/compat/object_layout.h"
#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/evaluator/generators.h"
#include "python/objects/names.h"
#include "python/objects/sequences.h"
#include "python/segments/exception_text.h"

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

bool Calls::recorder_takes(PyObject* callable) {
  // A method of a ufunc is a new object at each access.
  if (PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr; self && !heap_.is_born(self) && std::strcmp(Py_TYPE(self)->tp_name, "numpy.ufunc") == 0)
    return recorder_.takes(callable);
  auto [entry, fresh] = takes_.try_emplace(callable, false);
  if (fresh && !heap_.is_born(callable)) entry->second = recorder_.takes(callable);
  return entry->second;
}

Ref Calls::call_real(PyObject* callable, const Arguments& arguments) {
  core_.mark_position();
  std::vector<PyObject*> values;
  values.reserve(arguments.values.size() + 1);
  values.push_back(nullptr);  // room for a self, which vectorcall may use
  for (const Ref& value : arguments.values) values.push_back(value.get());
  PyObject* result = PyObject_Vectorcall(callable, values.data() + 1, arguments.positional() | PY_VECTORCALL_ARGUMENTS_OFFSET, arguments.names.get());
  // A float or an int might have been taken.
  const auto stands_for_number = [&](const Ref& value) { return heap_.traits(value.get()).role == Recorder::Role::number; };
  if (!result && PyErr_ExceptionMatches(PyExc_TypeError)) {
    Ref raised = compat::take_exception();  // out of the way of what looks at types
    if (std::ranges::any_of(arguments.values, stands_for_number)) throw GraphBreak("C code does not take what stands for a number", kCodeInCHint);
    compat::set_exception(std::move(raised));
  }
  Ref given = checked(result);
  const bool of_array = PyCFunction_Check(callable) && PyCFunction_GET_SELF(callable) != nullptr && core_.is_stand_in(PyCFunction_GET_SELF(callable));
  if (of_array) core_.loops().require_few_pieces(given.get());
  return given;
}

/// Empty where more than types may decide, or where the recorder would not be called.
Calls::Signature Calls::signature_of(PyObject* bound, PyObject* method, const Arguments& arguments) {
  if (!method || Py_TYPE(method) != &PyMethodDescr_Type || !PyCFunction_Check(bound)) return {};
  PyObject* self = PyCFunction_GET_SELF(bound);
  const bool same = reinterpret_cast<PyMethodDescrObject*>(method)->d_method == reinterpret_cast<PyCFunctionObject*>(bound)->m_ml;
  if (!same || recorder_.operates_on_any(self) || !recorder_takes(method)) return {};
  Signature signature = {method, Py_None};
  for (std::size_t at = 0; at < arguments.values.size(); ++at) {
    PyObject* value = arguments.values[at].get();
    const bool named = at + arguments.named() >= arguments.values.size();  // a tensor for a number then, which not all are taken for
    const bool plain = value == Py_None || PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value) || (core_.is_stand_in(value) && !named);
    if (!plain) return {};
    signature.push_back(reinterpret_cast<PyObject*>(Py_TYPE(value)));
  }
  for (std::size_t at = 0; at < arguments.named(); ++at) signature.push_back(PyTuple_GET_ITEM(arguments.names.get(), at));
  return signature;
}

Ref Calls::call_method_of_stand_in(PyObject* bound, PyObject* method, const Arguments& arguments) {
  Signature signature = signature_of(bound, method, arguments);
  if (signature.empty() || !accepted_.contains(signature)) {
    Ref result = call_real(bound, arguments);
    if (!signature.empty() && accepted_.insert(std::move(signature)).second && arguments.names) accepted_names_.push_back(arguments.names);
    return result;
  }
  Arguments all = arguments;
  all.values.insert(all.values.begin(), Ref::borrow(PyCFunction_GET_SELF(bound)));
  core_.mark_position();
  Ref given = recorder_.call(method, positional_tuple(all).get(), named_dict(all).get());
  core_.loops().require_few_pieces(given.get());
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

/// NumPy's functions leave the work to a method of their name, and ask what is no array for its shape: so of a tuple with fields.
void Calls::require_no_method_of_name(PyObject* callable, PyObject* value) {
  const TypeTraits& traits = heap_.traits(value);
  if (!traits.python_class || traits.exact || traits.container == Container::none) return;
  static PyObject* const asked[] = {checked(PyUnicode_InternFromString("shape")).release(), checked(PyUnicode_InternFromString("ndim")).release(), checked(PyUnicode_InternFromString("size")).release(),
                                    checked(PyUnicode_InternFromString("dtype")).release()};
  Ref own = Ref::steal(PyObject_GetAttr(callable, names().__name__));
  PyErr_Clear();
  const auto look_for = [&](PyObject* name) {
    PyObject* found = heap_.type_attribute(Py_TYPE(value), name);
    if (found != nullptr && Py_TYPE(found) != &PyMethodDescr_Type) throw GraphBreak(fmt::format("a library's function is given a {}, which has a '{}'", Py_TYPE(value)->tp_name, name_text(name)), kCodeInCHint);
  };
  for (PyObject* name : asked) look_for(name);
  if (own && PyUnicode_Check(own.get())) look_for(own.get());
}

Ref Calls::call_recorder(PyObject* callable, const Arguments& arguments) {
  constexpr int kDeepest = 64;  // levels; no tensor has as many dimensions
  ++recorded_;
  Arguments seen;
  seen.names = arguments.names;
  for (const Ref& value : arguments.values) {
    Ref given = value;
    core_.hidden_calls().require_no_hooks(given.get());
    require_no_method_of_name(callable, given.get());
    if (is_evaluated_generator(value.get()) || heap_.traits(value.get()).iterator) {
      // A function in C takes an iterator for an object that it does not know.
      if (!PyFunction_Check(callable)) throw GraphBreak(fmt::format("a library's function is given a {}", core_.visible_type(value.get())->tp_name), kCodeInCHint);
      given = checked(PyList_New(0));
      for (const Ref& item : core_.iteration().items_of(value.get())) checked(PyList_Append(given.get(), item.get()));
    }
    given = core_.hidden_calls().with_items_read(given.get());
    if (is_deeper_than(kDeepest, given.get())) throw GraphBreak("an operation takes a list that is nested too deeply");
    heap_.expose(given.get());
    if (Py_TYPE(given.get())->tp_iter != nullptr || Py_TYPE(given.get())->tp_as_buffer != nullptr) core_.hidden_calls().require_readable(given.get());
    seen.values.push_back(heap_.substitute(given.get()));
  }
  core_.mark_position();
  core_.loops().require_few_pieces_of(callable, seen);
  try {
    Ref result = recorder_.call(callable, positional_tuple(seen).get(), named_dict(seen).get());
    core_.loops().require_few_pieces(result.get());
    return heap_.adopt(std::move(result));
  } catch (const PythonError&) {
    // What the operation itself would raise may differ from what the stand-in raises: let the real one decide.
    throw GraphBreak("an operation raises " + type_and_text(compat::take_exception().get()));
  }
}

std::optional<Ref> Calls::record_differentiable(PyObject* callable, const Arguments& arguments) {
  Ref function = recorder_.differentiable(callable, arguments.values);
  if (function)
    if (Ref result = core_.call_now(function.get(), arguments); !result.is(Py_NotImplemented)) return result;
  Ref by_library = record_by_library(callable, arguments, false);
  if (by_library) return by_library;
  if (!function) return std::nullopt;
  return call_recorder(callable, arguments);
}

/// Empty where the library is not to differentiate the call.
Ref Calls::record_by_library(PyObject* callable, const Arguments& arguments, bool tried) {
  Ref by_library = recorder_.differentiable_by_library(callable, arguments.values, tried);
  if (!by_library) return {};
  Arguments given = arguments;
  given.values.insert(given.values.begin(), Ref::borrow(callable));
  Ref result = core_.call_now(by_library.get(), std::move(given));
  return result.is(Py_NotImplemented) ? Ref() : std::move(result);
}

Ref Calls::record(PyObject* callable, const Arguments& arguments) {
  if (std::optional<Ref> result = record_differentiable(callable, arguments)) return std::move(*result);
  try {
    return call_recorder(callable, arguments);
  } catch (const GradientNeeded& needed) {
    Ref result = record_by_library(callable, arguments, true);
    if (!result) throw;
    return result;
  }
}

/// Whether a frame holds the object, which then lives.
bool Calls::is_held(PyObject* object) const {
  const auto holds = [&](const Slot& slot) { return slot.object.is(object); };
  return std::ranges::any_of(core_.frames(), [&](const auto& frame) { return std::ranges::any_of(frame->locals, holds) || std::ranges::any_of(frame->stack, holds); });
}

/// Whether an object that the program has not changed holds it, which an argument, the state of a module or the closure of a running function leads to.
bool Calls::is_held_by_older(PyObject* object) const {
  const SourceId root = heap_.unwritten_root_of(object);
  if (!root) return false;
  const Source& source = heap_.sources()[root];
  if (source.kind == SourceKind::argument) return true;
  if (source.kind != SourceKind::constant || source.key.is(object)) return false;
  PyObject* holder = source.key.get();
  const auto runs = [&](const auto& frame) { return PyFunction_Check(holder) && frame->closure.is(PyFunction_GET_CLOSURE(holder)); };
  return PyModule_Check(holder) || PyDict_Check(holder) || std::ranges::any_of(core_.frames(), runs);
}

std::optional<Ref> Calls::call(PyObject* callable, Arguments arguments, Completion completion) {
  if (PyFunction_Check(callable)) return core_.functions().call(callable, std::move(arguments), completion);
  if (PyMethod_Check(callable)) {
    Ref function = heap_.part(SourceKind::method_function, callable, PyMethod_GET_FUNCTION(callable));
    Ref self = heap_.part(SourceKind::method_self, callable, PyMethod_GET_SELF(callable));
    const bool of_program = PyFunction_Check(function.get()) && !recorder_.is_own(function.get());
    if (core_.is_stand_in(self.get()) && !of_program && !recorder_takes(function.get()) && !recorder_.written_in_python(function.get())) {
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
  if (PyType_Check(callable)) return core_.classes().construct(reinterpret_cast<PyTypeObject*>(callable), std::move(arguments), completion);
  PyTypeObject* type = Py_TYPE(callable);
  if (type == library_types().partial) {
    Ref function = core_.attributes().load(callable, names().func);
    Ref first = core_.attributes().load(callable, names().args), named = core_.attributes().load(callable, names().keywords);
    Arguments all;
    for (Ref& item : core_.iteration().items_of(first.get())) all.values.push_back(std::move(item));
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
    return core_.cached_calls().call(callable, std::move(arguments));
  }
  if (PyObject* function = recorder_.written_in_python(callable)) return core_.functions().call(function, std::move(arguments), completion);
  if (is_getter(callable)) return call_getter(core_, callable, arguments);
  if (PyObject* wrapped = compiled_function_inside(callable)) {
    if (!heap_.source_of(wrapped) && !heap_.is_born(wrapped)) heap_.make_known(wrapped, heap_.sources().constant(wrapped));
    return call(wrapped, std::move(arguments), completion);
  }
  if (is_builtin_callable(callable)) return call_builtin(core_, callable, std::move(arguments));
  if (recorder_takes(callable)) return record(callable, std::move(arguments));
  PyObject* method = heap_.type_attribute(type, names().__call__);
  if (is_python_function(method)) {
    arguments.values.insert(arguments.values.begin(), Ref::borrow(callable));
    return call(method, std::move(arguments), completion);
  }
  if (PyWeakref_CheckRef(callable)) {
    PyObject* target = PyWeakref_GET_OBJECT(callable);
    const bool born = heap_.is_born(callable) && !heap_.source_of(callable);
    if (target == Py_None && born) return Ref::borrow(Py_None);
    if (target == Py_None) throw GraphBreak("a dead weak reference", kWeakHint);
    if (core_.is_stand_in(target)) throw GraphBreak("a weak reference to a tensor is followed", kWeakHint);  // a stand-in lives as long as the capture
    if (!heap_.is_born(target) && core_.dropped().any_gone()) throw GraphBreak("a weak reference is followed after something was let go", kWeakHint);
    const bool of_leaf = heap_.hooks_of(target, false) || heap_.hooks_of(target, true);
    if (heap_.is_born(target) && !of_leaf && heap_.journal().references_to(target) > 0) throw GraphBreak("a weak reference is followed to what was put into an older object", kWeakHint);
    Ref found = heap_.part(SourceKind::called, callable, target);
    // What has been taken out of older objects is still there, for the rollback.
    if (!heap_.is_born(target) && !heap_.journal().empty() && !is_held(found.get()) && !is_held_by_older(found.get())) throw GraphBreak("a weak reference is followed after older objects were changed", kWeakHint);
    return found;
  }
  if (heap_.is_born(callable) && is_pure_callable(type)) {
    for (const Ref& value : arguments.values) {
      heap_.expose(value.get());
      core_.hidden_calls().require_plain(value.get());
    }
    return heap_.adopt(call_real(callable, arguments));
  }
  throw GraphBreak(fmt::format("a call of a {}", type->tp_name), advice_on(callable));
}

void Calls::op_call(Frame& f, int count, Ref given_names) {
  Arguments arguments;
  arguments.names = given_names && PyTuple_GET_SIZE(given_names.get()) > 0 ? std::move(given_names) : Ref();
  arguments.values = core_.pop_many(count);
  // Below the arguments: callable and self in either order, with a null where there is no self.
  Slot upper = core_.pop_slot(), lower = core_.pop_slot();
  Ref callable;
  if (!lower.object) {
    callable = core_.force(std::move(upper));
  } else if (!upper.object) {
    callable = core_.force(std::move(lower));
  } else {
    callable = core_.force(std::move(lower));
    arguments.values.insert(arguments.values.begin(), core_.force(std::move(upper)));
  }
  (void)f;
  if (std::optional<Ref> result = call(callable.get(), std::move(arguments))) core_.push(std::move(*result));
}

void Calls::op_call_function_ex(Frame& f, const Instruction& i) {
  Ref named = i.arg & 1 ? core_.pop() : Ref();
  Ref positional = core_.pop();
  Slot upper = core_.pop_slot(), lower = core_.pop_slot();
  Ref callable = core_.force(upper.object ? std::move(upper) : std::move(lower));
  Arguments arguments;
  if (!core_.iteration().may_be_iterated(positional.get())) throw GraphBreak("an argument after '*' is no iterable");
  arguments.values = core_.iteration().items_to_keep(positional.get());
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
  if (std::optional<Ref> result = call(callable.get(), std::move(arguments))) core_.push(std::move(*result));
}

std::optional<Ref> Calls::call_stand_in_with_numbers(PyObject* self, PyObject* name, const Arguments& arguments) {
  PyObject* function = compat::type_lookup(Py_TYPE(self), name);
  if (function == nullptr) function = compat::type_lookup(core_.visible_type(self), name);
  if (function == nullptr || !recorder_takes(function)) return std::nullopt;
  Arguments all;
  all.names = arguments.names;
  all.values = arguments.values;
  all.values.insert(all.values.begin(), Ref::borrow(self));
  return call_recorder(function, all);
}

}  // namespace tenon::python
