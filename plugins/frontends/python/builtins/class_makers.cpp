// The standard library's class makers, run for real: dataclasses, named tuples, enumerations.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "python/builtins/answers.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// Whether a function belongs to the modules that are trusted to touch nothing but the class.
bool is_of_library(PyObject* function) {
  PyObject* module = reinterpret_cast<PyFunctionObject*>(function)->func_module;
  const char* text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    return false;
  }
  for (std::string_view trusted : {"dataclasses", "collections", "typing", "enum", "abc", "types", "functools"})
    if (trusted == text) return true;
  return false;
}

PyObject* function_inside(PyObject* value) {
  if (Py_TYPE(value) == &PyStaticMethod_Type || Py_TYPE(value) == &PyClassMethod_Type) {
    Ref inner = checked(PyObject_GetAttr(value, names().dunder_func));
    return inner.get();  // the wrapper holds it
  }
  return value;
}

[[noreturn]] void runs_program(const char* what) { throw GraphBreak(fmt::format("a class is made by the standard library, which calls the program's {}", what), kClassHint); }

/// What the machinery would call of a namespace while it makes the class.
void require_no_hooks(Heap& heap, PyObject* space, bool enumeration) {
  static constexpr std::array<const char*, 4> kOfEnumerations = {"__new__", "__init__", "_generate_next_value_", "__set_name__"};
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(space, &position, &key, &value)) {
    PyObject* hook = heap.traits(value).python_class ? compat::type_lookup(Py_TYPE(value), names().__set_name__) : nullptr;
    if (is_python_function(hook) && !is_of_library(hook)) runs_program("__set_name__");
    PyObject* function = function_inside(value);
    if (!enumeration || !PyFunction_Check(function) || is_of_library(function) || !PyUnicode_Check(key)) continue;
    for (const char* name : kOfEnumerations)
      if (PyUnicode_CompareWithASCIIString(key, name) == 0) runs_program(name);
  }
}

void require_no_hooks_of(Heap& heap, PyTypeObject* type, bool enumeration) {
  for (PyObject* name : {names().__init_subclass__, names().__new__}) {
    if (!enumeration && name == names().__new__) continue;
    PyObject* found = heap.type_attribute(type, name);
    PyObject* function = found ? function_inside(found) : nullptr;
    if (function != nullptr && PyFunction_Check(function) && !is_of_library(function)) runs_program(PyUnicode_AsUTF8(name));
  }
  for (const char* text : {"__dataclass_fields__", "__dataclass_params__"}) heap.type_attribute(type, checked(PyUnicode_InternFromString(text)).get());
}

void require_quiet(Evaluator& evaluator, PyObject* argument, bool enumeration) {
  Heap& heap = evaluator.heap();
  if (PyType_Check(argument)) {
    require_no_hooks_of(heap, reinterpret_cast<PyTypeObject*>(argument), enumeration);
    if (heap.is_born(argument)) require_no_hooks(heap, compat::type_dict(reinterpret_cast<PyTypeObject*>(argument)), enumeration);
  } else if (PyTuple_Check(argument)) {
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(argument); ++at) require_quiet(evaluator, PyTuple_GET_ITEM(argument, at), enumeration);
  } else if (PyDict_Check(argument)) {
    require_no_hooks(heap, argument, enumeration);
  }
}

void note_function(Heap& heap, PyObject* object) {
  heap.born(Ref::borrow(object));
  auto* parts = reinterpret_cast<PyFunctionObject*>(object);
  if (parts->func_defaults != nullptr) heap.born(Ref::borrow(parts->func_defaults));
  if (parts->func_kwdefaults != nullptr) heap.born(Ref::borrow(parts->func_kwdefaults));
  if (parts->func_closure == nullptr) return;
  heap.born(Ref::borrow(parts->func_closure));
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(parts->func_closure); ++at) heap.born(Ref::borrow(PyTuple_GET_ITEM(parts->func_closure, at)));
}

/// All that the class holds and that nobody has seen before was made with it.
void note_parts(Heap& heap, PyTypeObject* type) {
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(compat::type_dict(type), &position, &key, &value)) {
    const TypeTraits& traits = heap.traits(value);
    if (traits.atom || traits.role != Recorder::Role::other || heap.is_born(value) || heap.source_of(value)) continue;
    PyObject* function = function_inside(value);
    const bool of_library = PyFunction_Check(function) && is_of_library(function) && reinterpret_cast<PyFunctionObject*>(function)->func_closure == nullptr;
    if (of_library) continue;
    if (PyFunction_Check(function) && !heap.is_born(function) && !heap.source_of(function)) note_function(heap, function);
    if (!PyType_Check(value)) heap.born(Ref::borrow(value));
    if (PyDict_CheckExact(value)) {
      Py_ssize_t inner = 0;
      PyObject *name, *part;
      while (PyDict_Next(value, &inner, &name, &part))
        if (!heap.traits(part).atom && !PyType_Check(part) && !heap.source_of(part) && !heap.is_stand_in(part)) heap.born(Ref::borrow(part));
    }
  }
}

}  // namespace

std::optional<Ref> make_class_for_real(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  Heap& heap = evaluator.heap();
  auto* parts = reinterpret_cast<PyFunctionObject*>(function);
  const std::string_view name = PyUnicode_AsUTF8(parts->func_name);
  const bool enumeration = std::string_view(PyUnicode_AsUTF8(parts->func_qualname)).starts_with("EnumType.");
  for (const Ref& value : arguments.values) {
    heap.expose(value.get());
    require_quiet(evaluator, value.get(), enumeration);
  }
  const bool finishes = name == "_process_class" || name == "total_ordering";
  if (finishes && (arguments.values.empty() || !heap.is_born(arguments[0]))) throw GraphBreak("a class that is older than the call is finished by the standard library", kClassHint);
  Ref made = evaluator.calls().call_real(function, arguments);
  if (!PyType_Check(made.get())) throw GraphBreak("the standard library makes something that is no class");
  heap.born(made);
  heap.keep_alive(made);
  note_parts(heap, reinterpret_cast<PyTypeObject*>(made.get()));
  return made;
}

std::optional<Ref> number_autograd_function(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  Heap& heap = evaluator.heap();
  if (arguments.values.empty() || !PyType_Check(arguments[0]) || !heap.is_born(arguments[0])) return std::nullopt;
  Ref nothing = evaluator.calls().call_real(function, arguments);
  note_parts(heap, reinterpret_cast<PyTypeObject*>(arguments[0]));
  return nothing;
}

}  // namespace tenon::python
