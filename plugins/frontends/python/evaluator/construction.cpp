#include "python/evaluator/classes.h"

#include <fmt/format.h>

#include <string_view>

#include "python/compat/object_layout.h"
#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

Ref tuple_of(const Arguments& arguments, std::size_t first) {
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(arguments.positional() - first)));
  for (std::size_t at = first; at < arguments.positional(); ++at) PyTuple_SET_ITEM(tuple.get(), at - first, Ref(arguments.values[at]).release());
  return tuple;
}

bool any_varies(Heap& heap, const Arguments& arguments) {
  return std::ranges::any_of(arguments.values, [&](const Ref& value) { return heap.is_number(value.get()); });
}

/// Whether all arguments are numbers, strings, dtypes or classes: what such a call gives depends on nothing else.
bool all_plain_numbers(Heap& heap, const Arguments& arguments) {
  for (const Ref& value : arguments.values)
    if (!heap.traits(value.get()).atom && heap.traits(value.get()).role != Recorder::Role::scalar && !PyType_Check(value.get())) return false;
  return true;
}

/// `numpy.finfo` and `iinfo`: tables of constants, made once a dtype and kept in a cache of their class.
bool is_table_of_constants(PyTypeObject* type) {
  const std::string_view name = type->tp_name;
  if (name != "finfo" && name != "iinfo") return false;
  Ref module = Ref::steal(PyObject_GetAttr(as_object(type), names().__module__));
  const bool ours = module && PyUnicode_Check(module.get()) && PyUnicode_CompareWithASCIIString(module.get(), "numpy") == 0;
  PyErr_Clear();
  return ours;
}

/// `__new__` as the class finds it, out of its staticmethod.
Ref new_of(Evaluator& evaluator, PyTypeObject* type) {
  PyObject* found = evaluator.heap().type_attribute(type, names().__new__);
  if (found == nullptr) return {};
  if (Py_TYPE(found) == &PyStaticMethod_Type) return checked(PyObject_GetAttr(found, names().dunder_func));
  return Ref::borrow(found);
}

/// An object of a class without a `__new__` in Python, before its `__init__`.
Ref made_in_c(Heap& heap, PyTypeObject* type, const Arguments& arguments) {
  const TypeTraits& instances = heap.traits(type);
  const bool is_exception = PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException));
  const bool immutable = instances.container == Container::tuple || instances.container == Container::frozen_set;
  const bool plain = type->tp_new == PyBaseObject_Type.tp_new;
  if (!plain && !is_exception && instances.container == Container::none) throw GraphBreak(fmt::format("a {} is made", type->tp_name), advice_on(as_object(type)));
  // object.__new__ and object.__init__ take no arguments: where a class has both, neither does it.
  const bool takes_none = plain && type->tp_init == PyBaseObject_Type.tp_init;
  if ((takes_none || immutable) && arguments.named() != 0) throw GraphBreak(fmt::format("a {} is made with named arguments", type->tp_name));
  if (!plain)
    for (const Ref& value : arguments.values) heap.expose(value.get());
  Ref given = takes_none || is_exception || immutable ? tuple_of(arguments, 0) : checked(PyTuple_New(0));
  return checked(type->tp_new(type, given.get(), nullptr));
}

}  // namespace

void require_nothing_given(const Ref& by_init) {
  if (by_init.is(Py_None)) return;
  PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'", by_init.type()->tp_name);
  throw PythonError();
}

std::optional<Ref> Classes::construct(PyTypeObject* type, Arguments arguments, Completion completion) {
  if ((type == &PyLong_Type || type == &PyFloat_Type) && arguments.values.size() == 1) {
    if (heap_.is_number(arguments[0]) || core_.is_stand_in(arguments[0]))
      if (Ref number = recorder_.number_of(arguments[0], type)) return number;
  }
  if (type == &PyRange_Type) core_.loops().step_over_varying_range(arguments.values);
  if (find_builtin(as_object(type))) return call_builtin(core_, as_object(type), std::move(arguments));
  const TypeTraits& instances = heap_.traits(type);
  const auto is_recorded = [&] { return any_varies(heap_, arguments) && core_.calls().recorder_takes(as_object(type)); };
  if (instances.role == Recorder::Role::scalar && all_plain_numbers(heap_, arguments) && !is_recorded()) return core_.calls().call_real(as_object(type), arguments);
  if (std::optional<Ref> sizes = make_sizes(core_, type, arguments)) return sizes;
  if (core_.calls().recorder_takes(as_object(type))) return core_.calls().call_recorder(as_object(type), arguments);
  if (instances.atom && all_plain_numbers(heap_, arguments)) return core_.calls().call_real(as_object(type), arguments);
  if (is_table_of_constants(type) && all_plain_numbers(heap_, arguments)) {
    Ref table = core_.calls().call_real(as_object(type), arguments);
    heap_.make_known(table.get(), heap_.sources().constant(table.get()));
    return table;
  }
  if (std::optional<Ref> tensor = make_legacy_tensor(core_, type, arguments)) return tensor;
  PyObject* finalizer = heap_.type_attribute(type, names().__del__);
  if (finalizer != nullptr) throw GraphBreak(fmt::format("a {} is made, whose class has a __del__", type->tp_name), kFinalizerHint);

  PyObject* meta_call = heap_.type_attribute(Py_TYPE(type), names().__call__);
  if (!heap_.is_born(as_object(type))) heap_.type_attribute(type, names().__abstractmethods__);  // a class that has some makes no objects
  if (PyType_IsSubtype(Py_TYPE(type), library_types().enum_meta)) {
    const bool of_member = arguments.values.size() == 1 && heap_.traits(arguments[0]).identity;
    if (arguments.values.size() != 1 || !(of_member || heap_.traits(arguments[0]).atom)) throw GraphBreak("an enumeration is made");
    if (!of_member) arguments.values[0] = heap_.plain_key(arguments[0]);  // the class may keep it, in a member that it makes
    return heap_.adopt(core_.calls().call_real(as_object(type), arguments));
  }
  if (is_python_function(meta_call)) {
    heap_.make_known(meta_call, heap_.sources().constant(meta_call));
    arguments.values.insert(arguments.values.begin(), Ref::borrow(as_object(type)));
    return core_.calls().call(meta_call, std::move(arguments), completion);
  }
  if (meta_call != compat::type_lookup(&PyType_Type, names().__call__)) {  // typing.TypedDict calls dict
    if (Py_TYPE(meta_call)->tp_descr_get != nullptr) throw GraphBreak(fmt::format("a {} is made by a __call__ in C of its metaclass", type->tp_name), advice_on(as_object(type)));
    return core_.calls().call(meta_call, std::move(arguments), completion);
  }

  return construct_plain(type, std::move(arguments), completion);
}

std::optional<Ref> Classes::construct_plain(PyTypeObject* type, Arguments arguments, Completion completion) {
  Ref maker = new_of(core_, type);
  Ref object;
  if (is_python_function(maker.get())) {
    Arguments given = arguments;
    given.values.insert(given.values.begin(), Ref::borrow(as_object(type)));
    if (!heap_.is_born(maker.get())) heap_.make_known(maker.get(), heap_.sources().constant(maker.get()));
    object = core_.call_now(maker.get(), std::move(given));
    if (!PyType_IsSubtype(Py_TYPE(object.get()), type)) return object;
  } else if (PyType_IsSubtype(type, &PyType_Type)) {
    Arguments given = arguments;
    given.values.insert(given.values.begin(), Ref::borrow(as_object(type)));
    object = make_class(given);
  } else {
    object = heap_.born(made_in_c(heap_, type, arguments));
  }
  PyObject* init = heap_.type_attribute(Py_TYPE(object.get()), names().__init__);  // of what was made, which may be of a subclass
  if (init == nullptr || init == compat::type_lookup(&PyBaseObject_Type, names().__init__)) return object;
  arguments.values.insert(arguments.values.begin(), object);
  if (!is_python_function(init)) {
    for (Ref& value : arguments.values) heap_.expose(value.get());
    core_.calls().call_real(init, arguments);
    return object;
  }
  if (completion != Completion::push) {
    require_nothing_given(core_.call_now(init, std::move(arguments)));
    return object;
  }
  if (!heap_.is_born(init)) heap_.make_known(init, heap_.sources().constant(init));
  std::optional<Ref> done = core_.functions().call(init, std::move(arguments), Completion::push_object);
  if (done) {
    require_nothing_given(*done);
    return object;
  }
  core_.frame().completion_object = std::move(object);
  return std::nullopt;
}

}  // namespace tenon::python
