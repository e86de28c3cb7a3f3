// Classes that the program makes: they live as long as the capture, and cannot leave it.
#include <fmt/format.h>

#include "python/compat/object_layout.h"
#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// Keeps Python functions from running while C code makes a class: the evaluator runs them afterwards.
class Silenced {
 public:
  Silenced() = default;
  ~Silenced() {
    for (auto& [function, call] : functions_) reinterpret_cast<PyFunctionObject*>(function.get())->vectorcall = call;
  }
  Silenced(const Silenced&) = delete;

  void add(PyObject* function) {
    auto* parts = reinterpret_cast<PyFunctionObject*>(function);
    if (parts->vectorcall == nothing) return;
    functions_.emplace_back(Ref::borrow(function), parts->vectorcall);
    parts->vectorcall = nothing;
  }

 private:
  static PyObject* nothing(PyObject*, PyObject* const*, std::size_t, PyObject*) { return Py_NewRef(Py_None); }
  std::vector<std::pair<Ref, vectorcallfunc>> functions_;
};

/// A `__set_name__` that is written in Python, of one attribute.
struct NameSetter {
  PyObject *method, *attribute, *name;
};

/// The `__init_subclass__` that a class with these bases inherits, or null for that of object.
PyObject* subclass_hook(Heap& heap, PyObject* bases) {
  PyObject* usual = compat::type_lookup(&PyBaseObject_Type, names().__init_subclass__);
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(bases); ++at) {
    PyObject* found = heap.type_attribute(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, at)), names().__init_subclass__);
    if (found != nullptr && found != usual) return found;
  }
  return nullptr;
}

std::vector<NameSetter> name_setters(Heap& heap, PyObject* space) {
  std::vector<NameSetter> found;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(space, &position, &key, &value)) {
    PyObject* hook = heap.traits(value).python_class ? heap.type_attribute(Py_TYPE(value), names().__set_name__) : nullptr;
    if (is_python_function(hook)) found.push_back({hook, value, key});
  }
  return found;
}

}  // namespace

PyTypeObject* metaclass_of(PyTypeObject* given, PyObject* bases) {
  PyTypeObject* best = given;
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(bases); ++at) {
    PyTypeObject* other = Py_TYPE(PyTuple_GET_ITEM(bases, at));
    if (PyType_IsSubtype(best, other)) continue;
    if (!PyType_IsSubtype(other, best)) throw GraphBreak("a class is made whose bases have metaclasses that do not agree", kClassHint);
    best = other;
  }
  return best;
}

Ref Classes::run_class_body(PyObject* body, Ref space) {
  if (!PyFunction_Check(body)) throw GraphBreak("a class body that is no function");
  std::unique_ptr<Frame> frame = core_.functions().bind(body, {});
  frame->class_namespace = std::move(space);
  frame->completion = Completion::stop;
  const std::size_t base = core_.frames().size();
  core_.push_frame(std::move(frame));
  return core_.run(base);
}

Ref Classes::make_class(PyTypeObject* metaclass, PyObject* name, PyObject* bases, PyObject* space, const Arguments& keywords) {
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(bases); ++at)
    if (!PyType_Check(PyTuple_GET_ITEM(bases, at))) throw GraphBreak("a class is made with a base that is no class", kClassHint);
  if (heap_.type_attribute(metaclass, names().mro) != compat::type_lookup(&PyType_Type, names().mro)) throw GraphBreak("a class is made whose metaclass has an mro() of its own", kClassHint);
  const std::vector<NameSetter> setters = name_setters(heap_, space);
  PyObject* hook = subclass_hook(heap_, bases);
  Ref named = checked(PyDict_New());
  for (std::size_t at = 0; at < keywords.named(); ++at)
    checked(PyDict_SetItem(named.get(), PyTuple_GET_ITEM(keywords.names.get(), at), keywords.values[keywords.positional() + at].get()));
  Ref type;
  {
    Silenced silenced;
    for (const NameSetter& setter : setters) silenced.add(setter.method);
    if (hook != nullptr) {
      Ref function = Py_TYPE(hook) == &PyClassMethod_Type ? checked(PyObject_GetAttr(hook, names().dunder_func)) : Ref();
      if (!is_python_function(function.get())) throw GraphBreak("a class is made whose base has an __init_subclass__ of an unusual kind", kClassHint);
      silenced.add(function.get());
    }
    Ref arguments = checked(PyTuple_Pack(3, name, bases, space));
    type = heap_.born(checked(PyType_Type.tp_new(metaclass, arguments.get(), PyDict_GET_SIZE(named.get()) ? named.get() : nullptr)));
    heap_.keep_alive(type);
  }
  for (const NameSetter& setter : setters) core_.call_now(setter.method, {setter.attribute, type.get(), setter.name});
  if (hook == nullptr) return type;
  Arguments given;
  given.values = {type};
  given.values.insert(given.values.end(), keywords.values.begin() + static_cast<std::ptrdiff_t>(keywords.positional()), keywords.values.end());
  given.names = keywords.names;
  Ref function = checked(PyObject_GetAttr(hook, names().dunder_func));
  if (!heap_.is_born(function.get())) heap_.make_known(function.get(), heap_.sources().constant(function.get()));
  core_.call_now(function.get(), std::move(given));
  return type;
}

Ref Classes::make_class(const Arguments& arguments) {
  const bool fits = arguments.positional() == 4 && PyType_Check(arguments[0]) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(arguments[0]), &PyType_Type) &&
                    PyTuple_Check(arguments[2]) && PyDict_Check(arguments[3]);
  if (!fits) throw GraphBreak("type.__new__ with unusual arguments");
  heap_.expose(arguments[2]);
  heap_.expose(arguments[3]);
  PyTypeObject* metaclass = metaclass_of(reinterpret_cast<PyTypeObject*>(arguments[0]), arguments[2]);
  Ref space = checked(PyDict_New());
  checked(PyDict_Update(space.get(), arguments[3]));
  Arguments keywords;
  keywords.names = arguments.names;
  keywords.values.assign(arguments.values.begin() + static_cast<std::ptrdiff_t>(arguments.positional()), arguments.values.end());
  return make_class(metaclass, arguments[1], arguments[2], space.get(), keywords);
}

}  // namespace tenon::python
