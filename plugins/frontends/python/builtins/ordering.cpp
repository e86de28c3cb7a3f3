#include "python/builtins/ordering.h"

#include "python/builtins/table.h"
#include "python/compat/object_layout.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"
#include "python/objects/sequences.h"

namespace tenon::python {
namespace {

/// Positional values, the key function and the flags of such a call.
struct Wanted {
  std::vector<Ref> items;
  Ref key, fallback;
  bool reverse = false, one = false;
};

/// False when an argument is not understood: the real function judges it.
bool read_named(Evaluator& evaluator, const Arguments& arguments, Wanted& wanted) {
  for (std::size_t at = 0; at < arguments.named(); ++at) {
    PyObject* name = PyTuple_GET_ITEM(arguments.names.get(), at);
    const Ref& value = arguments.values[arguments.positional() + at];
    if (PyUnicode_CompareWithASCIIString(name, "key") == 0) wanted.key = value.is(Py_None) ? Ref() : value;
    else if (PyUnicode_CompareWithASCIIString(name, "reverse") == 0) wanted.reverse = evaluator.operators().truth(value.get());
    else if (PyUnicode_CompareWithASCIIString(name, "default") == 0) wanted.fallback = value;
    else return false;
  }
  return true;
}

std::vector<Ref> keys_of(Evaluator& evaluator, const Wanted& wanted) {
  if (!wanted.key) return wanted.items;
  std::vector<Ref> keys;
  for (const Ref& item : wanted.items) keys.push_back(evaluator.call_now(wanted.key.get(), {item.get()}));
  return keys;
}

bool any_ordering(Evaluator& evaluator, const std::vector<Ref>& keys) {
  for (const Ref& key : keys)
    if (has_python_ordering(evaluator, key.get())) return true;
  return false;
}

/// Negative where the first of two objects is less: what functools.cmp_to_key wants.
PyObject* compare_two(PyObject*, PyObject* const* objects, Py_ssize_t count) {
  Evaluator* evaluator = current_evaluator();
  if (evaluator == nullptr || count != 2) return nullptr;
  try {
    return PyLong_FromLong(evaluator->operators().truth(evaluator->operators().compare(Py_LT, objects[0], objects[1]).get()) ? -1 : 1);
  } catch (const GraphBreak& graph_break) {
    set_break_signal(graph_break);
  } catch (const PythonError&) {
  }
  return nullptr;
}

/// The items in Python's own order of comparing (which a program can see): real sort, over keys that compare here.
Ref sorted_items(const Wanted& wanted, const std::vector<Ref>& keys) {
  static PyMethodDef method = {"compare", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(compare_two)), METH_FASTCALL, nullptr};
  Ref comparison = checked(PyCFunction_New(&method, nullptr)), functools = checked(imported("functools"));
  Ref wrap = checked(PyObject_CallMethod(functools.get(), "cmp_to_key", "O", comparison.get()));
  Ref wrapped = checked(PyList_New(0)), order = checked(PyList_New(0));
  for (std::size_t at = 0; at < keys.size(); ++at) {
    checked(PyList_Append(wrapped.get(), checked(PyObject_CallOneArg(wrap.get(), keys[at].get())).get()));
    checked(PyList_Append(order.get(), checked(PyLong_FromSize_t(at)).get()));
  }
  Ref names = checked(Py_BuildValue("(ss)", "key", "reverse")), sort = checked(PyObject_GetAttrString(order.get(), "sort"));
  Ref item_of = checked(PyObject_GetAttr(wrapped.get(), tenon::python::names().__getitem__));
  PyObject* given[] = {item_of.get(), wanted.reverse ? Py_True : Py_False};
  checked(PyObject_Vectorcall(sort.get(), given, 0, names.get()));
  std::vector<Ref> items;
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(order.get()); ++at) items.push_back(wanted.items[PyLong_AsSize_t(PyList_GET_ITEM(order.get(), at))]);
  return list_of(items);
}

Ref extreme(Evaluator& evaluator, const Wanted& wanted, const std::vector<Ref>& keys, int operation) {
  std::size_t best = 0;
  for (std::size_t at = 1; at < keys.size(); ++at)
    if (evaluator.operators().truth(evaluator.operators().compare(operation, keys[at].get(), keys[best].get()).get())) best = at;
  return wanted.items[best];
}

PyObject* builtin(const char* name) { return PyDict_GetItemString(PyEval_GetBuiltins(), name); }

}  // namespace

bool has_python_ordering(Evaluator& evaluator, PyObject* value, int depth) {
  Heap& heap = evaluator.heap();
  const TypeTraits& traits = heap.traits(value);
  if (traits.atom || traits.identity || traits.role != Recorder::Role::other || depth > 4) return false;
  evaluator.hidden_calls().require_readable(value, depth);
  const Names& n = names();
  if (traits.python_class)
    for (PyObject* name : {n.__lt__, n.__gt__, n.__eq__})
      if (is_python_function(heap.type_attribute(Py_TYPE(value), name))) return true;
  if (traits.container == Container::list || traits.container == Container::tuple)
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(value); ++at)
      if (has_python_ordering(evaluator, PySequence_Fast_GET_ITEM(value, at), depth + 1)) return true;
  return false;
}

std::optional<Ref> order_by_evaluating(Evaluator& evaluator, PyObject* function, Arguments& arguments) {
  const bool sorts = function == builtin("sorted");
  const bool finds = function == builtin("min") || function == builtin("max");
  Wanted wanted;
  if ((!sorts && !finds) || arguments.positional() == 0 || (sorts && arguments.positional() != 1) || !read_named(evaluator, arguments, wanted)) return std::nullopt;
  if (arguments.positional() == 1) {
    wanted.items = sorts ? evaluator.iteration().items_to_keep(arguments[0]) : evaluator.iteration().items_of(arguments[0]);
    arguments.values[0] = evaluator.heap().born(list_of(wanted.items));  // an iterator is used up now
  } else {
    wanted.items.assign(arguments.values.begin(), arguments.values.begin() + static_cast<std::ptrdiff_t>(arguments.positional()));
  }
  if (!wanted.key && !any_ordering(evaluator, wanted.items)) return std::nullopt;
  const std::vector<Ref> keys = keys_of(evaluator, wanted);
  if (wanted.items.empty()) return sorts ? evaluator.heap().born(list_of({})) : wanted.fallback ? std::optional<Ref>(wanted.fallback) : std::nullopt;
  for (const Ref& key : keys) evaluator.heap().expose(key.get());
  if (sorts) return evaluator.heap().born(sorted_items(wanted, keys));
  return extreme(evaluator, wanted, keys, function == builtin("min") ? Py_LT : Py_GT);
}

bool sort_by_evaluating(Evaluator& evaluator, PyObject* list, const Arguments& arguments) {
  Wanted wanted;
  if (arguments.positional() != 0 || !read_named(evaluator, arguments, wanted)) return false;
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(list); ++at) wanted.items.push_back(Ref::borrow(PyList_GET_ITEM(list, at)));
  if (!wanted.key && !any_ordering(evaluator, wanted.items)) return false;
  const auto fill = [&](const Ref& items) { checked(PyList_SetSlice(list, 0, PyList_GET_SIZE(list), items.get())); };
  fill(checked(PyList_New(0)));  // as Python does: what compares must not see or change it
  Ref sorted;
  try {
    sorted = sorted_items(wanted, keys_of(evaluator, wanted));
  } catch (const PythonError&) {
    Ref exception = compat::take_exception();
    fill(list_of(wanted.items));
    compat::set_exception(std::move(exception));
    throw;
  }
  const bool modified = PyList_GET_SIZE(list) != 0;
  fill(sorted);
  if (!modified) return true;
  PyErr_SetString(PyExc_ValueError, "list modified during sort");
  throw PythonError();
}

}  // namespace tenon::python
