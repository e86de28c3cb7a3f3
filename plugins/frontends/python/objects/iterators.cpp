#include "python/objects/iterators.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string_view>

namespace tenon::python {
namespace {

bool is_one_of(PyTypeObject* type, std::string_view names) {
  const std::string_view name = type->tp_name;
  for (std::size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1)) {
    const bool starts = at == 0 || names[at - 1] == ' ', ends = at + name.size() == names.size() || names[at + name.size()] == ' ';
    if (starts && ends) return true;
  }
  return false;
}

/// (callable, arguments[, state]) of an iterator that says so without changing. State may be None where there is nothing to set.
Ref parts_of(PyObject* iterator) {
  Ref parts = Ref::steal(PyObject_CallMethod(iterator, "__reduce__", nullptr));
  const bool usable = parts && PyTuple_Check(parts.get()) && PyTuple_GET_SIZE(parts.get()) >= 2;
  if (!usable) PyErr_Clear();
  return usable ? parts : Ref();
}

Ref rebuilt(PyObject* parts, PyObject* arguments) {
  Ref copy = Ref::steal(PyObject_CallObject(PyTuple_GET_ITEM(parts, 0), arguments));
  if (copy && PyTuple_GET_SIZE(parts) > 2 && PyTuple_GET_ITEM(parts, 2) != Py_None) {
    Ref done = Ref::steal(PyObject_CallMethod(copy.get(), "__setstate__", "O", PyTuple_GET_ITEM(parts, 2)));
    if (!done) copy = {};
  }
  PyErr_Clear();
  return copy;
}

// zip: iterator, tuple, iterator, container.
constexpr int kDeepestWalk = 4;

struct Walk {
  const std::function<bool(PyObject*)>& is_one;
  int depth;
  bool in_tuple;  // of iterators (zip), or of items that have been given or will be
};

int look_at(PyObject* object, void* argument) {
  const Walk& walk = *static_cast<Walk*>(argument);
  if (!walk.in_tuple && walk.is_one(object)) return 1;
  const bool tuple = PyTuple_CheckExact(object) && !walk.in_tuple;
  const traverseproc traverse = Py_TYPE(object)->tp_traverse;
  if ((!tuple && !PyIter_Check(object)) || traverse == nullptr || walk.depth == kDeepestWalk) return 0;
  Walk inner{walk.is_one, walk.depth + 1, tuple};
  return traverse(object, look_at, &inner);
}

}  // namespace

bool walks_over(PyObject* iterator, const std::function<bool(PyObject*)>& is_one) {
  Walk walk{is_one, 0, false};
  return look_at(iterator, &walk) != 0;
}

namespace {

/// One of ints, by what it says of itself: from 3.12 on it is copied under a warning.
Ref copy_of_count(PyObject* count) noexcept {
  Ref text = Ref::steal(PyObject_Repr(count));
  long long next = 0, step = 1;
  int read = 0;
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  const bool plain = words && ((std::sscanf(words, "count(%lld)%n", &next, &read) == 1 && read > 0 && words[read] == 0) ||
                               (std::sscanf(words, "count(%lld, %lld)%n", &next, &step, &read) == 2 && read > 0 && words[read] == 0));
  const auto near_the_ends = [](long long number) { return number > std::numeric_limits<long long>::max() / 2 || number < std::numeric_limits<long long>::min() / 2; };
  Ref copy = plain && !near_the_ends(next) && !near_the_ends(step) ? Ref::steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(Py_TYPE(count)), "LL", next, step)) : Ref();
  PyErr_Clear();
  return copy;
}

}  // namespace

Ref copy_of_iterator(PyObject* iterator) noexcept {
  PyTypeObject* type = Py_TYPE(iterator);
  if (is_one_of(type, "itertools.count")) return copy_of_count(iterator);
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return {};
  const bool simple = is_one_of(type,
                                "list_iterator list_reverseiterator tuple_iterator range_iterator longrange_iterator str_ascii_iterator str_iterator bytes_iterator reversed "
                                "dict_keyiterator dict_valueiterator dict_itemiterator set_iterator");
  const bool over_others = type == &PyEnum_Type || type == &PyZip_Type;
  if (!simple && !over_others) return {};
  Ref parts = parts_of(iterator);
  if (!parts) return {};
  PyObject* given = PyTuple_GET_ITEM(parts.get(), 1);
  // What is written to an array in a capture shows in no object, and its items are read when their turn comes.
  if (type == &PyReversed_Type && !PyTuple_CheckExact(PyTuple_GET_ITEM(given, 0)) && !PyUnicode_CheckExact(PyTuple_GET_ITEM(given, 0)) && !PyBytes_CheckExact(PyTuple_GET_ITEM(given, 0))) return {};
  if (simple) return rebuilt(parts.get(), given);
  const Py_ssize_t count = PyTuple_GET_SIZE(given);
  PyObject* const* all = reinterpret_cast<PyTupleObject*>(given)->ob_item;
  const Py_ssize_t by_parts = type == &PyEnum_Type ? 1 : 0;  // zip gives the tuple that it holds
  Ref arguments = Ref::steal(PyTuple_New(count));
  for (Py_ssize_t at = 0; arguments && at < count; ++at) {
    PyObject* each = all[at];
    if (type == &PyEnum_Type && at == 1) {  // the count
      PyTuple_SET_ITEM(arguments.get(), at, Py_NewRef(each));
      continue;
    }
    if (Py_REFCNT(each) > std::count(all, all + count, each) + by_parts) return {};  // whoever else holds it may advance it, too
    const Py_ssize_t first = std::find(all, all + at, each) - all;
    Ref copy = first < at ? Ref::borrow(PyTuple_GET_ITEM(arguments.get(), first)) : copy_of_iterator(each);
    if (!copy) return {};
    PyTuple_SET_ITEM(arguments.get(), at, copy.release());
  }
  return arguments ? rebuilt(parts.get(), arguments.get()) : Ref();
}

Ref upcoming_item(PyObject* iterator, Py_ssize_t index) noexcept {
  Ref copy = copy_of_iterator(iterator);
  Ref item;
  for (; copy && index >= 0; --index) {
    item = Ref::steal(PyIter_Next(copy.get()));
    if (!item) break;
  }
  PyErr_Clear();
  return index < 0 ? item : Ref();
}

}  // namespace tenon::python
