// Classes that the program makes: they live as long as the capture, and cannot leave it.
#include <fmt/format.h>

#include "python/builtins/handlers.h"
#include "python/compat/object_layout.h"
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

/// The most derived metaclass of the bases and of the one that is given, which may be none.
PyTypeObject* metaclass_of(PyTypeObject* given, PyObject* bases) {
  PyTypeObject* best = given;
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(bases); ++at) {
    PyTypeObject* other = Py_TYPE(PyTuple_GET_ITEM(bases, at));
    if (PyType_IsSubtype(best, other)) continue;
    if (!PyType_IsSubtype(other, best)) throw GraphBreak("a class is made whose bases have metaclasses that do not agree");
    best = other;
  }
  return best;
}

}  // namespace

Ref Evaluator::run_class_body(PyObject* body, Ref space) {
  if (!PyFunction_Check(body)) throw GraphBreak("a class body that is no function");
  std::unique_ptr<Frame> frame = bind(body, {});
  frame->class_namespace = std::move(space);
  frame->completion = Completion::stop;
  const std::size_t base = frames_.size();
  push_frame(std::move(frame));
  return run(base);
}

/// Creation in C runs C code only: what the evaluator must see is kept from it, and run after it in the same order.
Ref Evaluator::make_class(PyTypeObject* metaclass, PyObject* name, PyObject* bases, PyObject* space, const Arguments& keywords) {
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(bases); ++at)
    if (!PyType_Check(PyTuple_GET_ITEM(bases, at))) throw GraphBreak("a class is made with a base that is no class");
  if (heap_.type_attribute(metaclass, names().mro) != compat::type_lookup(&PyType_Type, names().mro)) throw GraphBreak("a class is made whose metaclass has an mro() of its own");
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
      if (!is_python_function(function.get())) throw GraphBreak("a class is made whose base has an __init_subclass__ of an unusual kind");
      silenced.add(function.get());
    }
    Ref arguments = checked(PyTuple_Pack(3, name, bases, space));
    type = heap_.born(checked(PyType_Type.tp_new(metaclass, arguments.get(), PyDict_GET_SIZE(named.get()) ? named.get() : nullptr)));
    heap_.keep_alive(type);
  }
  for (const NameSetter& setter : setters) call_now(setter.method, {setter.attribute, type.get(), setter.name});
  if (hook == nullptr) return type;
  Arguments given;
  given.values = {type};
  given.values.insert(given.values.end(), keywords.values.begin() + static_cast<std::ptrdiff_t>(keywords.positional()), keywords.values.end());
  given.names = keywords.names;
  Ref function = checked(PyObject_GetAttr(hook, names().dunder_func));
  if (!heap_.is_born(function.get())) heap_.make_known(function.get(), heap_.sources().constant(function.get()));
  call_now(function.get(), std::move(given));
  return type;
}

namespace {

/// The bases, with what those that are no classes (typing.Generic[T], typing.NamedTuple) stand for.
Ref resolved_bases(Evaluator& evaluator, const Ref& bases, bool& changed) {
  Ref list = checked(PyList_New(0));
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(bases.get()); ++at) {
    PyObject* base = PyTuple_GET_ITEM(bases.get(), at);
    std::optional<Ref> entries = PyType_Check(base) ? std::nullopt : evaluator.find_attribute(base, names().__mro_entries__);
    if (!entries) {
      checked(PyList_Append(list.get(), base));
      continue;
    }
    changed = true;
    for (const Ref& entry : evaluator.items_of(evaluator.call_now(entries->get(), {bases.get()}).get())) checked(PyList_Append(list.get(), entry.get()));
  }
  return changed ? evaluator.heap().born(checked(PyList_AsTuple(list.get()))) : bases;
}

/// Takes `metaclass=` out of the keywords of a class statement.
Ref take_metaclass(Arguments& keywords) {
  if (keywords.named() == 0) return {};
  Ref rest = checked(PyList_New(0)), metaclass;
  std::vector<Ref> values;
  for (std::size_t at = 0; at < keywords.named(); ++at) {
    PyObject* name = PyTuple_GET_ITEM(keywords.names.get(), at);
    if (PyUnicode_CompareWithASCIIString(name, "metaclass") == 0) {
      metaclass = keywords.values[at];
      continue;
    }
    checked(PyList_Append(rest.get(), name));
    values.push_back(keywords.values[at]);
  }
  keywords.values = std::move(values);
  keywords.names = PyList_GET_SIZE(rest.get()) ? checked(PyList_AsTuple(rest.get())) : Ref();
  return metaclass;
}

/// metaclass.__prepare__(name, bases, **keywords): a dict, or an object of a class derived from it.
Ref prepared_namespace(Evaluator& evaluator, PyTypeObject* metaclass, const Ref& name, const Ref& bases, const Arguments& keywords) {
  PyObject* prepare = evaluator.heap().type_attribute(metaclass, names().__prepare__);
  if (prepare == nullptr || prepare == compat::type_lookup(&PyType_Type, names().__prepare__)) return evaluator.heap().born(checked(PyDict_New()));
  Arguments given;
  given.values = {name, bases};
  given.values.insert(given.values.end(), keywords.values.begin(), keywords.values.end());
  given.names = keywords.names;
  Ref method = evaluator.load_attribute(as_object(metaclass), names().__prepare__);
  Ref space = evaluator.call_now(method.get(), std::move(given));
  if (evaluator.heap().traits(space.get()).container != Container::dict || !evaluator.heap().is_born(space.get())) throw GraphBreak("a class is made with a namespace that is no dict");
  return space;
}

}  // namespace

Handled build_class(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.positional() < 2) throw GraphBreak("a class statement without a name");
  Arguments keywords;
  keywords.names = arguments.names;
  keywords.values.assign(arguments.values.begin() + static_cast<std::ptrdiff_t>(arguments.positional()), arguments.values.end());
  Ref written = evaluator.heap().born(checked(PyTuple_New(static_cast<Py_ssize_t>(arguments.positional()) - 2)));
  for (std::size_t at = 2; at < arguments.positional(); ++at) PyTuple_SET_ITEM(written.get(), at - 2, Ref(arguments.values[at]).release());
  Ref name = arguments.values[1];
  Ref given = take_metaclass(keywords);
  bool changed = false;
  Ref bases = resolved_bases(evaluator, written, changed);
  if (given && !PyType_Check(given.get())) throw GraphBreak("a class is made by a metaclass that is no class");
  PyTypeObject* metaclass = metaclass_of(given ? reinterpret_cast<PyTypeObject*>(given.get()) : &PyType_Type, bases.get());
  Ref space = prepared_namespace(evaluator, metaclass, name, bases, keywords);
  Ref cell = evaluator.run_class_body(arguments[0], space);
  if (changed) evaluator.store_item(space.get(), names().__orig_bases__, written.get());
  Arguments call;
  call.values = {name, bases, space};
  call.values.insert(call.values.end(), keywords.values.begin(), keywords.values.end());
  call.names = keywords.names;
  Ref type = metaclass == &PyType_Type ? evaluator.make_class(metaclass, name.get(), bases.get(), space.get(), call) : evaluator.call_now(as_object(metaclass), std::move(call));
  if (PyCell_Check(cell.get()) && PyCell_GET(cell.get()) != type.get()) throw GraphBreak("a class whose __class__ cell is another's");
  return type;
}

Handled type_call(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.empty() || !PyType_Check(arguments[0])) throw GraphBreak("type.__call__ without a class");
  Ref type = arguments.values.front();
  arguments.values.erase(arguments.values.begin());
  return evaluator.construct_plain(reinterpret_cast<PyTypeObject*>(type.get()), std::move(arguments), Completion::stop);
}

/// type.__init__ does nothing but count its arguments.
Handled type_init(Evaluator& evaluator, Arguments& arguments) {
  static PyObject* const init = checked(PyObject_GetAttr(as_object(&PyType_Type), names().__init__)).release();
  return evaluator.call_real(init, arguments);
}

/// abc.ABCMeta collects in C which methods are abstract, also of the bases.
Handled init_abstract_class(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.size() != 1 || !PyType_Check(arguments[0]) || !evaluator.heap().is_born(arguments[0])) throw GraphBreak("an abstract class is made in an unusual way");
  PyObject* bases = reinterpret_cast<PyTypeObject*>(arguments[0])->tp_bases;
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(bases); ++at)
    evaluator.heap().type_attribute(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, at)), names().__abstractmethods__);
  return std::nullopt;  // call_builtin runs it
}

Handled type_new(Evaluator& evaluator, Arguments& arguments) {
  const bool fits = arguments.positional() == 4 && PyType_Check(arguments[0]) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(arguments[0]), &PyType_Type) &&
                    PyTuple_Check(arguments[2]) && PyDict_Check(arguments[3]);
  if (!fits) throw GraphBreak("type.__new__ with unusual arguments");
  Heap& heap = evaluator.heap();
  heap.expose(arguments[2]);
  heap.expose(arguments[3]);
  PyTypeObject* metaclass = metaclass_of(reinterpret_cast<PyTypeObject*>(arguments[0]), arguments[2]);
  Ref space = checked(PyDict_New());
  checked(PyDict_Update(space.get(), arguments[3]));
  Arguments keywords;
  keywords.names = arguments.names;
  keywords.values.assign(arguments.values.begin() + static_cast<std::ptrdiff_t>(arguments.positional()), arguments.values.end());
  return evaluator.make_class(metaclass, arguments[1], arguments[2], space.get(), keywords);
}

}  // namespace tenon::python
