// Class statements, and the calls of `type` that stand for one.
#include "python/builtins/handlers.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// The bases, with what those that are no classes (typing.Generic[T], typing.NamedTuple) stand for.
Ref resolved_bases(Evaluator& evaluator, const Ref& bases, bool& changed) {
  Ref list = checked(PyList_New(0));
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(bases.get()); ++at) {
    PyObject* base = PyTuple_GET_ITEM(bases.get(), at);
    std::optional<Ref> entries = PyType_Check(base) ? std::nullopt : evaluator.attributes().find(base, names().__mro_entries__);
    if (!entries) {
      checked(PyList_Append(list.get(), base));
      continue;
    }
    changed = true;
    for (const Ref& entry : evaluator.iteration().items_of(evaluator.call_now(entries->get(), {bases.get()}).get())) checked(PyList_Append(list.get(), entry.get()));
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
  Ref method = evaluator.attributes().load(as_object(metaclass), names().__prepare__);
  Ref space = evaluator.call_now(method.get(), std::move(given));
  if (evaluator.heap().traits(space.get()).container != Container::dict || !evaluator.heap().is_born(space.get())) throw GraphBreak("a class is made with a namespace that is no dict", kClassHint);
  return space;
}

}  // namespace

Handled build_class(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.positional() < 2) throw GraphBreak("a class statement without a name", kClassHint);
  Arguments keywords;
  keywords.names = arguments.names;
  keywords.values.assign(arguments.values.begin() + static_cast<std::ptrdiff_t>(arguments.positional()), arguments.values.end());
  Ref written = evaluator.heap().born(checked(PyTuple_New(static_cast<Py_ssize_t>(arguments.positional()) - 2)));
  for (std::size_t at = 2; at < arguments.positional(); ++at) PyTuple_SET_ITEM(written.get(), at - 2, Ref(arguments.values[at]).release());
  Ref name = arguments.values[1];
  Ref given = take_metaclass(keywords);
  bool changed = false;
  Ref bases = resolved_bases(evaluator, written, changed);
  if (given && !PyType_Check(given.get())) throw GraphBreak("a class is made by a metaclass that is no class", kClassHint);
  PyTypeObject* metaclass = metaclass_of(given ? reinterpret_cast<PyTypeObject*>(given.get()) : &PyType_Type, bases.get());
  Ref space = prepared_namespace(evaluator, metaclass, name, bases, keywords);
  Ref cell = evaluator.classes().run_class_body(arguments[0], space);
  if (changed) evaluator.items().store(space.get(), names().__orig_bases__, written.get());
  Arguments call;
  call.values = {name, bases, space};
  call.values.insert(call.values.end(), keywords.values.begin(), keywords.values.end());
  call.names = keywords.names;
  Ref type = metaclass == &PyType_Type ? evaluator.classes().make_class(metaclass, name.get(), bases.get(), space.get(), call) : evaluator.call_now(as_object(metaclass), std::move(call));
  if (PyCell_Check(cell.get()) && PyCell_GET(cell.get()) != type.get()) throw GraphBreak("a class whose __class__ cell is another's", kClassHint);
  return type;
}

Handled type_call(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.empty() || !PyType_Check(arguments[0])) throw GraphBreak("type.__call__ without a class", kClassHint);
  Ref type = arguments.values.front();
  arguments.values.erase(arguments.values.begin());
  return evaluator.classes().construct_plain(reinterpret_cast<PyTypeObject*>(type.get()), std::move(arguments), Completion::stop);
}

/// type.__init__ does nothing but count its arguments.
Handled type_init(Evaluator& evaluator, Arguments& arguments) {
  static PyObject* const init = checked(PyObject_GetAttr(as_object(&PyType_Type), names().__init__)).release();
  return evaluator.calls().call_real(init, arguments);
}

/// abc.ABCMeta collects in C which methods are abstract, also of the bases.
Handled init_abstract_class(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.size() != 1 || !PyType_Check(arguments[0]) || !evaluator.heap().is_born(arguments[0])) throw GraphBreak("an abstract class is made in an unusual way");
  PyObject* bases = reinterpret_cast<PyTypeObject*>(arguments[0])->tp_bases;
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(bases); ++at)
    evaluator.heap().type_attribute(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, at)), names().__abstractmethods__);
  return std::nullopt;  // call_builtin runs it
}

Handled type_new(Evaluator& evaluator, Arguments& arguments) { return evaluator.classes().make_class(arguments); }

}  // namespace tenon::python
