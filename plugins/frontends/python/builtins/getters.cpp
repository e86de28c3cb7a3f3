// operator.attrgetter, itemgetter and methodcaller, called by their parts so that what they read is guarded.
#include "python/builtins/table.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// What the getter was made with: (type, arguments), or (partial, …) for a methodcaller with named arguments.
Ref arguments_of(PyObject* getter) {
  Ref parts = checked(PyObject_CallMethod(getter, "__reduce__", nullptr));
  const bool plain = PyTuple_GET_ITEM(parts.get(), 0) == reinterpret_cast<PyObject*>(Py_TYPE(getter));
  if (!plain) throw GraphBreak("a methodcaller with named arguments");
  return Ref::borrow(PyTuple_GET_ITEM(parts.get(), 1));
}

Ref dotted_attribute(Evaluator& evaluator, PyObject* owner, PyObject* path) {
  Ref parts = checked(PyUnicode_Split(path, checked(PyUnicode_FromString(".")).get(), -1));
  Ref object = Ref::borrow(owner);
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(parts.get()); ++at) {
    PyObject* name = Py_NewRef(PyList_GET_ITEM(parts.get(), at));
    PyUnicode_InternInPlace(&name);
    Ref interned = Ref::steal(name);
    object = evaluator.attributes().load(object.get(), interned.get());
  }
  return object;
}

}  // namespace

bool is_getter(PyObject* callable) {
  const LibraryTypes& types = library_types();
  return Py_TYPE(callable) == types.attribute_getter || Py_TYPE(callable) == types.item_getter || Py_TYPE(callable) == types.method_caller;
}

Ref call_getter(Evaluator& evaluator, PyObject* getter, Arguments& arguments) {
  if (arguments.values.size() != 1) throw GraphBreak("a getter of the module operator with more than one argument");
  Ref given = arguments_of(getter);
  PyObject* owner = arguments[0];
  const Py_ssize_t count = PyTuple_GET_SIZE(given.get());
  if (Py_TYPE(getter) == library_types().method_caller) {
    Ref method = dotted_attribute(evaluator, owner, PyTuple_GET_ITEM(given.get(), 0));
    Arguments rest;
    for (Py_ssize_t at = 1; at < count; ++at) rest.values.push_back(evaluator.heap().adopt(Ref::borrow(PyTuple_GET_ITEM(given.get(), at))));
    return evaluator.call_now(method.get(), std::move(rest));
  }
  const bool attributes = Py_TYPE(getter) == library_types().attribute_getter;
  const auto one = [&](PyObject* what) { return attributes ? dotted_attribute(evaluator, owner, what) : evaluator.items().load(owner, what); };
  if (count == 1) return one(PyTuple_GET_ITEM(given.get(), 0));
  Ref all = evaluator.heap().born(checked(PyTuple_New(count)));
  for (Py_ssize_t at = 0; at < count; ++at) PyTuple_SET_ITEM(all.get(), at, one(PyTuple_GET_ITEM(given.get(), at)).release());
  return all;
}

}  // namespace tenon::python
