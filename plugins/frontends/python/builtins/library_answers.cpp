// Python functions of the standard library and of NumPy that are answered at once.
#include <fmt/format.h>

#include <string_view>

#include "python/builtins/answers.h"
#include "python/builtins/handlers.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// What the dict of a type along its bases holds, as it is; empty where nothing does. Guarded.
Ref in_classes(Evaluator& evaluator, PyTypeObject* type, PyObject* name) {
  Heap& heap = evaluator.heap();
  PyObject* found = heap.type_attribute(type, name);
  if (found == nullptr) return {};
  const bool changeable = heap.traits(type).python_class && !heap.is_born(as_object(type)) && !heap.wrote_along_bases(type, name);
  if (!changeable) return heap.adopt(Ref::borrow(found));
  return heap.enter(heap.sources().keyed(SourceKind::type_attribute, heap.sources().constant(as_object(type)), name), found);
}

/// What the object's own dict holds; empty where nothing does, or the object has none. Guarded.
Ref in_object(Evaluator& evaluator, PyObject* object, PyObject* name) {
  Heap& heap = evaluator.heap();
  PyObject* real = evaluator.is_stand_in(object) ? heap.real_of(object) : object;
  if (real == nullptr || heap.traits(real).atom) return {};
  PyObject* dict = heap.attributes_of(real);
  return dict ? heap.dict_item(dict, name) : Ref();
}

/// Whether instances have no `__dict__` but the usual one.
bool has_usual_dict(PyTypeObject* type) {
  PyObject* descriptor = compat::type_lookup(type, names().__dict__);
  return descriptor == nullptr || Py_TYPE(descriptor) == &PyGetSetDescr_Type;
}

bool is_data_descriptor(PyObject* value) { return Py_TYPE(value)->tp_descr_get != nullptr && Py_TYPE(value)->tp_descr_set != nullptr; }

bool is_constant_argument(Evaluator& evaluator, PyObject* value) {
  const TypeTraits& traits = evaluator.heap().traits(value);
  return (traits.atom || traits.identity) && !evaluator.heap().is_number(value);
}

}  // namespace

std::optional<Ref> static_attribute(Evaluator& evaluator, Arguments arguments) {
  if (arguments.named() != 0 || arguments.values.size() < 2 || arguments.values.size() > 3 || !PyUnicode_CheckExact(arguments[1])) throw GraphBreak("inspect.getattr_static() with unusual arguments");
  PyObject *object = arguments[0], *name = arguments[1];
  const bool is_class = PyType_Check(object);
  PyTypeObject* type = is_class ? reinterpret_cast<PyTypeObject*>(object) : evaluator.visible_type(object);
  if (!has_usual_dict(is_class ? Py_TYPE(object) : type)) throw GraphBreak("inspect.getattr_static() of an object with a '__dict__' of its own");
  Ref of_class = in_classes(evaluator, type, name);
  Ref own = is_class || (of_class && is_data_descriptor(of_class.get())) ? Ref() : in_object(evaluator, object, name);
  if (own) return own;
  if (of_class) return of_class;
  if (is_class)
    if (Ref of_meta = in_classes(evaluator, Py_TYPE(object), name)) return of_meta;
  if (arguments.values.size() == 3) return arguments.values[2];
  PyErr_SetObject(PyExc_AttributeError, name);
  throw PythonError();
}

namespace {

/// A pattern is the same object for as long as `re` keeps it.
void guard_kept_pattern(Heap& heap, const Arguments& arguments) {
  if (arguments.values.size() != 2 || !PyLong_Check(arguments[1])) return;
  Ref kept = checked(PyObject_GetAttrString(checked(imported("re")).get(), "_cache"));
  Ref flags = checked(PyNumber_Index(arguments[1]));
  Ref key = checked(PyTuple_Pack(3, Py_TYPE(arguments[0]), arguments[0], flags.get()));
  if (!PyDict_CheckExact(kept.get()) || PyDict_GetItemWithError(kept.get(), key.get()) == nullptr) return;
  heap.make_known(kept.get(), heap.sources().constant(kept.get()));
  heap.dict_item(kept.get(), key.get());
}

}  // namespace

std::optional<Ref> compile_pattern(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  for (const Ref& value : arguments.values)
    if (!is_constant_argument(evaluator, value.get())) throw GraphBreak("a pattern is made of what is no plain text");
  Ref made = evaluator.calls().call_real(function, arguments);
  Heap& heap = evaluator.heap();
  guard_kept_pattern(heap, arguments);
  if (!heap.source_of(made.get())) heap.make_known(made.get(), heap.sources().constant(made.get()));
  return made;
}

std::optional<Ref> is_logged(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  const auto attribute = [&](const char* name) { return evaluator.attributes().load(arguments[0], checked(PyUnicode_InternFromString(name)).get()); };
  const bool usual = arguments.named() == 0 && arguments.values.size() == 2 && PyLong_CheckExact(arguments[1]);
  const std::string_view type = usual ? Py_TYPE(arguments[0])->tp_name : "";
  if ((type != "Logger" && type != "RootLogger") || evaluator.heap().is_born(arguments[0])) throw GraphBreak("a logger of an unusual kind is asked for its level");
  evaluator.calls().call_real(function, arguments);  // the answer is in the logger's cache then
  if (evaluator.operators().truth(attribute("disabled").get())) return Ref::borrow(Py_False);
  return evaluator.items().load(attribute("_cache").get(), arguments[1]);
}

std::optional<Ref> find_module(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  if (arguments.named() != 0 || arguments.values.size() != 1 || !PyUnicode_CheckExact(arguments[0])) throw GraphBreak("importlib.util.find_spec() with unusual arguments");
  Heap& heap = evaluator.heap();
  PyObject* modules = PyImport_GetModuleDict();
  heap.make_known(modules, heap.sources().constant(modules));
  if (Ref module = heap.dict_item(modules, arguments[0]))
    if (Ref spec = evaluator.attributes().load(module.get(), checked(PyUnicode_InternFromString("__spec__")).get()); !spec.is(Py_None)) return spec;
  Ref functools = checked(imported("functools"));
  Ref question = checked(PyObject_CallMethod(functools.get(), "partial", "OO", function, arguments[0]));
  if (!checked(PyObject_CallNoArgs(question.get())).is(Py_None)) throw GraphBreak("importlib.util.find_spec() of a module that is not imported");
  return read_by(evaluator, question.get());
}

std::optional<Ref> call_whole(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  return evaluator.functions().run(function, std::move(arguments));
}

std::optional<Ref> read_lazy_property(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  if (arguments.named() != 0 || arguments.values.size() < 2 || arguments[1] != Py_None) return evaluator.functions().run(function, std::move(arguments));
  Ref made = evaluator.calls().call_real(function, arguments);
  evaluator.heap().make_known(made.get(), evaluator.heap().sources().constant(made.get()));
  return made;
}

std::optional<Ref> enter_error_state(Evaluator& evaluator, Arguments arguments) {
  if (arguments.named() != 0 || arguments.values.size() != 1) throw GraphBreak("np.errstate is entered in an unusual way", kErrstateHint);
  const auto attribute = [&](const char* name) { return evaluator.attributes().load(arguments[0], checked(PyUnicode_InternFromString(name)).get()); };
  Ref unspecified = checked(PyObject_GetAttrString(checked(imported("numpy._core._ufunc_config")).get(), "_Unspecified"));
  if (!attribute("_token").is(Py_None) || !attribute("_call").is(unspecified.get())) throw GraphBreak("np.errstate is entered again, or with a callback", kErrstateHint);
  Ref modes = checked(PyDict_New());
  for (const char* name : {"_all", "_divide", "_over", "_under", "_invalid"}) checked(PyDict_SetItemString(modes.get(), name + 1, attribute(name).get()));
  evaluator.recorder().enter_error_state(modes.get());
  evaluator.attributes().store(arguments[0], checked(PyUnicode_InternFromString("_token")).get(), Py_True);  // it cannot be entered again
  evaluator.library_states().enter_mode(arguments.values[0], arguments.values[0], checked(PyObject_GetAttrString(checked(imported("tenon._error_handling")).get(), "enter")));
  return Ref::borrow(Py_None);
}

std::optional<Ref> leave_error_state(Evaluator& evaluator, Arguments arguments) {
  if (arguments.values.empty() || !evaluator.library_states().leave_mode(arguments[0])) throw GraphBreak("np.errstate is left that was entered before the graph", kErrstateHint);
  evaluator.recorder().leave_error_state();
  return Ref::borrow(Py_None);
}

}  // namespace tenon::python
