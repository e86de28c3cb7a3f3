// Methods of built-in containers that change one that is older than the call.
#include <fmt/format.h>

#include <string_view>

#include "python/builtins/ordering.h"
#include "python/builtins/table.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/heap/finalizers.h"
#include "python/objects/dict_access.h"
#include "python/objects/names.h"
#include "python/objects/sequences.h"

namespace tenon::python {
namespace {

enum class Given : std::uint8_t {
  as_is,          // the arguments are stored, or are numbers
  items,          // every argument is iterated: the journal holds what it gave
  counted_items,  // the same, and it is asked how many it gives
  sets,           // the same, and the method wants a set
};

struct Method {
  std::string_view name;
  bool reads = true;   // what it does or gives depends on what the container holds
  bool moves = true;   // items change their positions
  Given given = Given::as_is;
};

/// What only adds items, to a container without a limit, or moves them.
bool keeps_items(PyObject* container, std::string_view method) {
  for (std::string_view each : {"append", "extend", "insert", "reverse", "sort", "add", "update", "__iadd__", "__ior__"})
    if (method == each) return PyList_Check(container) || PyAnySet_Check(container);
  return false;
}

constexpr Method kListMethods[] = {
    {"append", false, false}, {"extend", false, false, Given::counted_items}, {"__iadd__", false, false, Given::counted_items}, {"insert", false},
    {"__imul__", false},      {"reverse", false},                     {"clear", false},                          {"pop"},
    {"remove"},               {"__delitem__"},
};
constexpr Method kDequeMethods[] = {
    {"append", false},  {"appendleft", false}, {"extend", false, true, Given::items}, {"extendleft", false, true, Given::items}, {"__iadd__", false, true, Given::items},
    {"__imul__", false}, {"reverse", false},   {"clear", false},                      {"rotate", false},                         {"pop"},
    {"popleft"},        {"remove"},            {"insert"},                            {"__setitem__"},                           {"__delitem__"},
};
constexpr Method kSetMethods[] = {
    {"add", false},
    {"discard", false},
    {"clear", false},
    {"remove"},
    {"update", false, true, Given::items},
    {"difference_update", false, true, Given::items},
    {"intersection_update", false, true, Given::items},
    {"symmetric_difference_update", false, true, Given::items},
    {"__ior__", false, true, Given::sets},
    {"__iand__", false, true, Given::sets},
    {"__isub__", false, true, Given::sets},
    {"__ixor__", false, true, Given::sets},
};

PyTypeObject* base_of(PyObject* container) {
  if (PyList_Check(container)) return &PyList_Type;
  if (PyAnySet_Check(container)) return &PySet_Type;
  return library_types().deque;
}

const Method* find_method(PyObject* container, std::string_view name) {
  const auto among = [&](std::span<const Method> all) -> const Method* {
    for (const Method& each : all)
      if (each.name == name) return &each;
    return nullptr;
  };
  if (PyList_Check(container)) return among(kListMethods);
  return PyAnySet_Check(container) ? among(kSetMethods) : among(kDequeMethods);
}

class Mutation {
 public:
  Mutation(Evaluator& evaluator, PyObject* container, const char* name) : evaluator_(evaluator), heap_(evaluator.heap()), container_(container), name_(name) {}

  Ref run(Arguments arguments) {
    if (arguments.named() != 0 && std::string_view(name_) != "sort") refuse();
    if (PyList_Check(container_) && std::string_view(name_) == "__setitem__" && arguments.positional() == 2) return set_item(arguments);
    if (PyList_Check(container_) && std::string_view(name_) == "sort") return sort(std::move(arguments));
    const Method* method = find_method(container_, name_);
    if (method == nullptr) refuse();
    for (Ref& value : arguments.values) value = normalised(method->given, value);
    Change& change = before_change(method->reads);
    if (method->reads && !PyAnySet_Check(container_)) evaluator_.hidden_calls().require_plain(container_);
    Ref result = call(arguments);
    change.all_written |= method->moves;
    return result;
  }

 private:
  [[noreturn]] void refuse() {
    throw GraphBreak(fmt::format("{}() of a {} that is older than the call", name_, Py_TYPE(container_)->tp_name), kReturnHint);
  }

  Change& before_change(bool reads) {
    Change& change = heap_.before_change(container_, reads);
    if (change.ends_in_code && !keeps_items(container_, name_)) throw GraphBreak(fmt::format("{}() of a {} with items at whose end code may run", name_, Py_TYPE(container_)->tp_name));
    return change;
  }

  Ref normalised(Given given, const Ref& value) {
    if (given == Given::as_is) {
      if (PyAnySet_Check(container_)) evaluator_.equality().prepare_key(value.get(), container_);
      return value;
    }
    if (given == Given::sets && !PyAnySet_Check(value.get())) refuse();
    Ref items = heap_.born(tuple_of(given == Given::counted_items ? evaluator_.iteration().items_to_keep(value.get()) : evaluator_.iteration().items_of(value.get())));
    if (PyAnySet_Check(container_))
      for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(items.get()); ++at) evaluator_.equality().prepare_key(PyTuple_GET_ITEM(items.get(), at), container_);
    return given == Given::sets ? heap_.born(checked(PyFrozenSet_New(items.get()))) : items;
  }

  /// The method as the built-in class has it, past any override, and its entry in the journal.
  Ref call(const Arguments& arguments) {
    Ref name = checked(PyUnicode_InternFromString(name_));
    PyObject* method = compat::type_lookup(base_of(container_), name.get());
    Arguments all;
    all.values.push_back(Ref::borrow(container_));
    all.values.insert(all.values.end(), arguments.values.begin(), arguments.values.end());
    Ref result = evaluator_.calls().call_real(method, all);
    heap_.journal().add(WriteKind::call, std::move(all.values), Ref::borrow(method));
    return heap_.adopt(std::move(result));
  }

  Ref set_item(Arguments& arguments) {
    PyObject* key = arguments[0];
    if (PySlice_Check(key)) {
      arguments.values[1] = normalised(Given::items, arguments.values[1]);
      before_change(true).all_written = true;
      return call(arguments);
    }
    if (!PyIndex_Check(key) || evaluator_.is_stand_in(key)) refuse();
    const Py_ssize_t length = heap_.length(container_);
    Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) throw_python_error();
    if (index < 0) index += length;
    Change& change = before_change(false);
    Ref result = call(arguments);  // raises when out of range
    change.positions.insert(index);
    return result;
  }

  /// The key function runs now, so that the journal holds the order that it gave.
  Ref sort(Arguments arguments) {
    before_change(true).all_written = true;
    if (has_python_ordering(evaluator_, container_)) refuse();
    for (Ref& value : arguments.values) value = callback_for(evaluator_, value.get());
    Ref method = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyList_Type), "sort"));
    arguments.values.insert(arguments.values.begin(), Ref::borrow(container_));
    Ref result = evaluator_.calls().call_real(method.get(), arguments);
    Ref whole = heap_.born(checked(PySlice_New(nullptr, nullptr, nullptr)));
    Ref items = heap_.born(checked(PySequence_Tuple(container_)));
    heap_.journal().add(WriteKind::call, {Ref::borrow(container_), std::move(whole), std::move(items)},
                        checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyList_Type), "__setitem__")));
    return result;
  }

  Evaluator& evaluator_;
  Heap& heap_;
  PyObject* container_;
  const char* name_;
};

/// Methods of dicts, one key at a time.
class DictMutation {
 public:
  DictMutation(Evaluator& evaluator, PyObject* dict, std::string_view name) : evaluator_(evaluator), heap_(evaluator.heap()), dict_(dict), name_(name) {}

  Ref run(Arguments& arguments) {
    const std::size_t count = arguments.positional();
    if (name_ == "update" || name_ == "__ior__" || name_ == "__init__") return update(arguments);
    if (name_ == "move_to_end" && arguments.values.size() == 2) arguments.names = {};  // `last` is its only other argument
    if (arguments.named() != 0) refuse();
    if (count > 0) evaluator_.equality().prepare_key(arguments[0], dict_);
    if (name_ == "__setitem__" && count == 2) {
      heap_.store_key(dict_, arguments[0], arguments[1]);
      return Ref::borrow(Py_None);
    }
    if (name_ == "setdefault" && (count == 1 || count == 2)) {
      if (Ref value = heap_.dict_item(dict_, arguments[0])) return value;
      Ref value = count == 2 ? arguments.values[1] : Ref::borrow(Py_None);
      heap_.store_key(dict_, arguments[0], value.get());
      return value;
    }
    if ((name_ == "pop" && (count == 1 || count == 2)) || (name_ == "__delitem__" && count == 1)) return pop(arguments);
    if (name_ == "popitem" && count == 0) return pop_last();
    if (name_ == "clear" && count == 0) return clear();
    if (name_ == "move_to_end" && count >= 1) return move_to_end(arguments);
    refuse();
  }

 private:
  [[noreturn]] void refuse() { throw GraphBreak(fmt::format("{}() of a {} that is older than the call", name_, Py_TYPE(dict_)->tp_name), kReturnHint); }

  Ref pop(const Arguments& arguments) {
    Ref value = heap_.dict_item(dict_, arguments[0]);
    if (value) {
      heap_.store_key(dict_, arguments[0], nullptr);
      return name_ == "pop" ? value : Ref::borrow(Py_None);
    }
    if (arguments.positional() == 2) return arguments.values[1];
    PyErr_SetObject(PyExc_KeyError, arguments[0]);
    throw PythonError();
  }

  Ref pop_last() {
    heap_.expose(dict_);
    Ref items = items_past_override(dict_);
    if (PyList_GET_SIZE(items.get()) == 0) {
      PyErr_SetString(PyExc_KeyError, keeps_own_order(dict_) ? "dictionary is empty" : "popitem(): dictionary is empty");
      throw PythonError();
    }
    PyObject* key = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), PyList_GET_SIZE(items.get()) - 1), 0);
    Ref pair = heap_.born(checked(PyTuple_Pack(2, key, heap_.dict_item(dict_, key).get())));
    heap_.store_key(dict_, key, nullptr);
    return pair;
  }

  Ref call(const char* method, std::vector<Ref> operands) {
    PyTypeObject* base = PyType_IsSubtype(Py_TYPE(dict_), library_types().ordered_dict) ? library_types().ordered_dict : &PyDict_Type;
    Ref name = checked(PyUnicode_InternFromString(method));
    PyObject* found = compat::type_lookup(base, name.get());
    Arguments all;
    all.values = operands;
    Ref result = evaluator_.calls().call_real(found, all);
    heap_.journal().add(WriteKind::call, std::move(operands), Ref::borrow(found));
    return result;
  }

  Ref clear() {
    require_quiet_end(dict_);
    Change& change = heap_.before_change(dict_, false);
    Ref result = call("clear", {Ref::borrow(dict_)});
    change.all_written = true;
    return result;
  }

  Ref move_to_end(const Arguments& arguments) {
    heap_.dict_contains(dict_, arguments[0]);
    const Ref varying = heap_.loose_key(dict_, arguments[0]);
    if (!varying) heap_.settle_keys(dict_);
    heap_.before_change(dict_, false);
    std::vector<Ref> operands = {Ref::borrow(dict_)};
    operands.insert(operands.end(), arguments.values.begin(), arguments.values.end());
    if (varying) operands[1] = varying;
    const bool before = varying && evaluator_.recorder().hash_unguarded(true);
    Ref result = call("move_to_end", std::move(operands));  // which raises where it is not there
    if (varying) evaluator_.recorder().hash_unguarded(before);
    return result;
  }

  /// What dict.update accepts: a mapping or pairs, then names.
  Ref update(const Arguments& arguments) {
    if (arguments.positional() > 1) refuse();
    if (arguments.positional() == 1) {
      PyObject* other = arguments[0];
      if (heap_.traits(other).container == Container::dict) {
        heap_.expose(other);
        Ref pairs = checked(PyDict_Items(other));
        for (Py_ssize_t at = 0; at < PyList_GET_SIZE(pairs.get()); ++at) {
          PyObject* key = PyTuple_GET_ITEM(PyList_GET_ITEM(pairs.get(), at), 0);
          store(key, heap_.dict_item(other, key).get());
        }
      } else {
        if (name_ == "__ior__" || evaluator_.attributes().find(other, checked(PyUnicode_InternFromString("keys")).get())) refuse();
        for (const Ref& item : evaluator_.iteration().items_of(other)) {
          const std::vector<Ref> pair = evaluator_.iteration().items_of(item.get());
          if (pair.size() != 2) refuse();
          store(pair[0].get(), pair[1].get());
        }
      }
    }
    for (std::size_t at = 0; at < arguments.named(); ++at) store(PyTuple_GET_ITEM(arguments.names.get(), at), arguments[arguments.positional() + at]);
    return Ref::borrow(name_ == "__ior__" ? dict_ : Py_None);
  }

  void store(PyObject* key, PyObject* value) {
    evaluator_.equality().prepare_key(key, dict_);
    heap_.store_key(dict_, key, value);
  }

  Evaluator& evaluator_;
  Heap& heap_;
  PyObject* dict_;
  std::string_view name_;
};

}  // namespace

Ref change_older(Evaluator& evaluator, PyObject* container, const char* method, Arguments arguments) {
  if (std::string_view(method).starts_with("__i") && std::string_view(method) != "__init__" && arguments.values.size() != 1) throw GraphBreak(fmt::format("{}() with {} arguments", method, arguments.values.size()));
  if (PyDict_Check(container)) return DictMutation(evaluator, container, method).run(arguments);
  return Mutation(evaluator, container, method).run(std::move(arguments));
}

}  // namespace tenon::python
