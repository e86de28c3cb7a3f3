#include "python/builtins/control.h"

#include <fmt/format.h>

#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

constexpr const char* kNames[] = {"pred", "true_fn", "false_fn", "operands"};

struct Choice {
  Ref predicate, true_function, false_function, operands;
};

/// Gives an argument its place. False for a name that there is not, or a place that is taken.
bool place(Ref (&places)[4], const char* name, Ref value) {
  for (std::size_t i = 0; i < 4; ++i)
    if (std::string_view(kNames[i]) == name && !places[i]) {
      places[i] = std::move(value);
      return true;
    }
  return false;
}

Choice bind(const Arguments& arguments) {
  Ref places[4];
  bool fits = arguments.positional() <= 4;
  for (std::size_t i = 0; i < arguments.values.size() && fits; ++i) {
    const bool named = i >= arguments.positional();
    const char* name = named ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(arguments.names.get(), static_cast<Py_ssize_t>(i - arguments.positional()))) : kNames[i];
    fits = name && place(places, name, arguments.values[i]);
  }
  if (!fits || !places[0] || !places[1] || !places[2]) throw GraphBreak("tenon.cond with wrong arguments");
  return {std::move(places[0]), std::move(places[1]), std::move(places[2]), std::move(places[3])};
}

/// What a branch gives: its structure, and the stand-ins in it, in order.
struct BranchResult {
  Ref value;
  std::vector<PyObject*> tensors;
};

void collect_tensors(Evaluator& evaluator, PyObject* value, std::vector<PyObject*>& tensors) {
  if (evaluator.is_stand_in(value)) {
    tensors.push_back(value);
  } else if (PyTuple_Check(value) || PyList_CheckExact(value)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) collect_tensors(evaluator, PySequence_Fast_GET_ITEM(value, i), tensors);
  } else if (PyDict_CheckExact(value)) {
    PyObject *key = nullptr, *item = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &item);) collect_tensors(evaluator, item, tensors);
  }
}

BranchResult record_branch(Evaluator& evaluator, PyObject* function, const std::vector<Ref>& operands) {
  const Heap::NoWrites pure(evaluator.heap(), "a branch of tenon.cond");
  evaluator.recorder().begin_branch();
  BranchResult branch;
  try {
    branch.value = evaluator.call_now(function, Arguments{operands, {}});
  } catch (const PythonError&) {
    PyErr_Clear();
    throw GraphBreak("a branch of tenon.cond raises an exception");  // eager execution raises it only where the branch is taken
  }
  collect_tensors(evaluator, branch.value.get(), branch.tensors);
  evaluator.mark_position();
  evaluator.recorder().end_branch(branch.tensors);
  return branch;
}

[[noreturn]] void differ(const char* what) {
  throw GraphBreak(fmt::format("the branches of tenon.cond give different {}", what), "give the same structure in both");
}

/// The structure that both branches give, with the results of the choice in the places of their tensors.
Ref merged(Evaluator& evaluator, PyObject* a, PyObject* b, const std::vector<Ref>& results, std::size_t& next) {
  if (evaluator.is_stand_in(a) != evaluator.is_stand_in(b)) differ("things");
  if (evaluator.is_stand_in(a)) return results[next++];
  if (Py_TYPE(a) != Py_TYPE(b)) differ("types");
  if (PyTuple_CheckExact(a) || PyList_CheckExact(a)) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(a);
    if (size != PySequence_Fast_GET_SIZE(b)) differ("numbers of results");
    Ref list = checked(PyList_New(size));
    for (Py_ssize_t i = 0; i < size; ++i)
      PyList_SET_ITEM(list.get(), i, merged(evaluator, PySequence_Fast_GET_ITEM(a, i), PySequence_Fast_GET_ITEM(b, i), results, next).release());
    return evaluator.heap().born(PyList_CheckExact(a) ? list : checked(PyList_AsTuple(list.get())));
  }
  if (PyDict_CheckExact(a)) {
    if (PyDict_GET_SIZE(a) != PyDict_GET_SIZE(b)) differ("keys");
    Ref dict = checked(PyDict_New());
    PyObject *key = nullptr, *item = nullptr, *other_key = nullptr, *other = nullptr;
    for (Py_ssize_t i = 0, j = 0; PyDict_Next(a, &i, &key, &item) && PyDict_Next(b, &j, &other_key, &other);) {
      if (!PyUnicode_CheckExact(key) || !PyUnicode_CheckExact(other_key) || PyUnicode_Compare(key, other_key) != 0) differ("keys");
      checked(PyDict_SetItem(dict.get(), key, merged(evaluator, item, other, results, next).get()));
    }
    return evaluator.heap().born(dict);
  }
  const bool plain = a == b || PyUnicode_CheckExact(a) || PyLong_CheckExact(a) || PyBool_Check(a) || PyFloat_CheckExact(a) || a == Py_None;
  if (!plain || !same_constant(a, b)) differ("values that are no tensors");
  return Ref::borrow(a);
}

}  // namespace

std::optional<Ref> call_cond(Evaluator& evaluator, Arguments arguments) {
  Choice choice = bind(arguments);
  const std::vector<Ref> operands = choice.operands ? evaluator.iteration().items_of(choice.operands.get()) : std::vector<Ref>();
  if (!evaluator.is_stand_in(choice.predicate.get()))
    return evaluator.call_now((evaluator.operators().truth(choice.predicate.get()) ? choice.true_function : choice.false_function).get(), Arguments{operands, {}});
  const BranchResult then = record_branch(evaluator, choice.true_function.get(), operands);
  const BranchResult otherwise = record_branch(evaluator, choice.false_function.get(), operands);
  if (then.tensors.size() != otherwise.tensors.size()) differ("numbers of tensors");
  if (then.tensors.empty()) throw GraphBreak("the branches of tenon.cond give no tensor");
  Ref package = checked(imported("tenon"));
  Ref function = checked(PyObject_GetAttrString(package.get(), "cond"));
  evaluator.mark_position();
  const std::vector<Ref> results = evaluator.recorder().choose(function.get(), choice.predicate.get());
  std::size_t next = 0;
  return merged(evaluator, then.value.get(), otherwise.value.get(), results, next);
}

}  // namespace tenon::python
