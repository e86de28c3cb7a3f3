#include "python/evaluator/building.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/compat/object_layout.h"
#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/dict_access.h"
#include "python/objects/names.h"
#include "python/objects/sequences.h"

namespace tenon::python {
namespace {

[[noreturn]] void raise_unpack(const char* text, Py_ssize_t wanted, Py_ssize_t found) {
  PyErr_Format(PyExc_ValueError, text, wanted, found);
  throw PythonError();
}

/// The method that does to a container what the instruction does, or null.
const char* method_of(Op op) {
  switch (op) {
    case Op::list_append: return "append";
    case Op::set_add: return "add";
    case Op::map_add: return "__setitem__";
    case Op::list_extend: return "extend";
    case Op::set_update:
    case Op::dict_update: return "update";
    default: return nullptr;
  }
}

}  // namespace

void Building::op_build(Frame& f, const Instruction& i) {
  switch (i.op) {
    case Op::build_tuple: core_.push(heap_.born(tuple_of(core_.pop_many(i.arg)))); return;
    case Op::build_list: core_.push(heap_.born(list_of(core_.pop_many(i.arg)))); return;
    case Op::build_slice: {
      Ref step = i.arg == 3 ? core_.pop() : Ref();
      Ref stop = core_.pop(), start = core_.pop();
      core_.push(heap_.born(checked(PySlice_New(start.get(), stop.get(), step.get()))));
      return;
    }
    case Op::build_string: {
      std::vector<Ref> parts = core_.pop_many(i.arg);
      Ref tuple = tuple_of(std::move(parts)), empty = checked(PyUnicode_FromString(""));
      Ref text = core_.hidden_calls().holds_number(tuple.get()) ? recorder_.late_text(checked(PyObject_GetAttrString(empty.get(), "join")).get(), checked(PyTuple_Pack(1, tuple.get())).get()) : Ref();
      if (!text) {
        heap_.expose(tuple.get());  // where one is of numbers that must be known
        text = checked(PyUnicode_Join(empty.get(), tuple.get()));
      }
      core_.push(std::move(text));
      return;
    }
    case Op::build_set: {
      std::vector<Ref> items = core_.pop_many(i.arg);
      Ref set = heap_.born(checked(PySet_New(nullptr)));
      for (const Ref& item : items) add_to_set(set.get(), item.get());
      core_.push(std::move(set));
      return;
    }
    default: break;
  }
  Ref keys = i.op == Op::build_const_key_map ? core_.pop() : Ref();
  std::vector<Ref> items = core_.pop_many(keys ? i.arg : 2 * i.arg);
  Ref dict = heap_.born(checked(PyDict_New()));
  for (int at = 0; at < i.arg; ++at) {
    PyObject* key = keys ? PyTuple_GET_ITEM(keys.get(), at) : items[2 * at].get();
    core_.equality().prepare_key(key, dict.get());
    checked(PyDict_SetItem(dict.get(), key, (keys ? items[at] : items[2 * at + 1]).get()));
  }
  (void)f;
  core_.push(std::move(dict));
}

void Building::add_to_set(PyObject* set, PyObject* item) {
  if (PyObject* only = heap_.loose_item(set)) {
    const Ref held = Ref::borrow(only);
    if (core_.visible_type(item) == core_.visible_type(only) && core_.hidden_calls().holds_number(item) && core_.equality().same_or_equal(held.get(), item)) return;
    heap_.tighten(set);
  }
  core_.equality().prepare_key(item, set);
  const bool loosely = PySet_CheckExact(set) && PySet_GET_SIZE(set) == 0 && !heap_.source_of(set) && core_.hidden_calls().holds_number(item);
  if (loosely) heap_.add_loosely(set, item);
  else checked(PySet_Add(set, item));
}

/// A comprehension or display that a graph break has cut in two: its container is older than this segment.
bool Building::extend_older(const Instruction& i) {
  const int operands = i.op == Op::map_add ? 2 : 1;
  PyObject* target = core_.peek(i.arg + operands);
  const char* method = method_of(i.op);
  if (!heap_.is_older(target, "an extension")) return false;
  if (method == nullptr) throw GraphBreak("'**' into a dict that is older than the call");
  Arguments arguments;
  arguments.values = core_.pop_many(operands);
  change_older(core_, target, method, std::move(arguments));
  return true;
}

void Building::op_extend(Frame& f, const Instruction& i) {
  if (i.op == Op::list_to_tuple) {
    Ref list = core_.pop();  // older than the segment where a break came before its last item
    Ref tuple = heap_.born(checked(PyTuple_New(heap_.length(list.get()))));
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(tuple.get()); ++at) PyTuple_SET_ITEM(tuple.get(), at, heap_.sequence_item(list.get(), at).release());
    core_.push(std::move(tuple));
    return;
  }
  if (extend_older(i)) return;
  if (i.op == Op::map_add) {
    Ref value = core_.pop(), key = core_.pop();
    if (heap_.is_number(key.get()) || heap_.has_loose_keys(core_.peek(i.arg))) return heap_.store_key(core_.peek(i.arg), key.get(), value.get());
    core_.equality().prepare_key(key.get(), core_.peek(i.arg));
    checked(PyDict_SetItem(core_.peek(i.arg), key.get(), value.get()));
    return;
  }
  Ref value = core_.pop();
  PyObject* target = core_.peek(i.arg);
  switch (i.op) {
    case Op::list_append: checked(PyList_Append(target, value.get())); return;
    case Op::set_add: add_to_set(target, value.get()); return;
    case Op::list_extend:
      require_iterable(value.get(), "Value after * must be an iterable, not %.200s");
      for (const Ref& item : core_.iteration().items_to_keep(value.get())) checked(PyList_Append(target, item.get()));
      return;
    case Op::set_update:
      for (const Ref& item : core_.iteration().items_of(value.get())) add_to_set(target, item.get());
      return;
    default: break;
  }
  (void)f;
  if (heap_.traits(value.get()).container != Container::dict) throw GraphBreak(fmt::format("'**' of a {}", Py_TYPE(value.get())->tp_name));
  if (i.op == Op::dict_update && PyDict_GET_SIZE(target) == 0 && heap_.has_loose_keys(value.get())) return heap_.copy_with_loose_keys(value.get(), target);
  heap_.expose_keys(value.get());
  Ref items = items_past_override(value.get()), seen = checked(PyDict_New());
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(items.get()); ++at) {
    PyObject* key = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), at), 0);
    checked(PyDict_SetItem(seen.get(), key, heap_.dict_item(value.get(), key).get()));
  }
  if (i.op == Op::dict_merge && compat::share_a_key(target, seen.get())) throw GraphBreak("an argument given twice");
  checked(PyDict_Update(target, seen.get()));
}

void Building::require_iterable(PyObject* value, const char* complaint) {
  if (core_.iteration().may_be_iterated(value)) return;
  if (heap_.traits(value).python_class) heap_.guard_special_methods(Py_TYPE(value));  // none of which is `__iter__` so far
  PyErr_Format(PyExc_TypeError, complaint, core_.visible_type(value)->tp_name);
  throw PythonError();
}

void Building::op_unpack(Frame&, const Instruction& i) {
  Ref value = core_.pop();
  require_iterable(value.get(), "cannot unpack non-iterable %.200s object");
  // One more says already that there are too many.
  std::vector<Ref> items = i.op == Op::unpack_sequence ? core_.iteration().items_of(value.get(), static_cast<std::size_t>(i.arg) + 1) : core_.iteration().items_of(value.get());
  const auto found = static_cast<Py_ssize_t>(items.size());
  if (i.op == Op::unpack_sequence) {
    if (found < i.arg) raise_unpack("not enough values to unpack (expected %zd, got %zd)", i.arg, found);
    if (found > i.arg) raise_unpack("too many values to unpack (expected %zd)", i.arg, found);
    for (std::size_t at = items.size(); at-- > 0;) core_.push(std::move(items[at]));
    return;
  }
  const int before = i.arg & 0xFF, after = i.arg >> 8;
  if (found < before + after) raise_unpack("not enough values to unpack (expected at least %zd, got %zd)", before + after, found);
  for (int at = 0; at < after; ++at) core_.push(std::move(items[found - 1 - at]));
  core_.push(heap_.born(list_of({std::make_move_iterator(items.begin() + before), std::make_move_iterator(items.end() - after)})));
  for (int at = before; at-- > 0;) core_.push(std::move(items[at]));
}

void Building::op_match(Frame&, const Instruction& i) {
  switch (i.op) {
    case Op::get_len: core_.push(checked(PyLong_FromSsize_t(core_.operators().length(core_.peek(1))))); return;
    case Op::match_mapping:
    case Op::match_sequence: {  // arrays are sequences from NumPy 2.5 on
      const unsigned long feature = i.op == Op::match_mapping ? Py_TPFLAGS_MAPPING : Py_TPFLAGS_SEQUENCE;
      core_.push(Ref::borrow(PyType_HasFeature(core_.visible_type(core_.peek(1)), feature) ? Py_True : Py_False));
      return;
    }
    default: break;
  }
  if (i.op == Op::match_keys) {
    core_.push(match_keys(core_.peek(2), core_.peek(1)));
  } else {
    Ref keyword_names = core_.pop(), type = core_.pop(), subject = core_.pop();
    core_.push(match_class(subject.get(), type.get(), i.arg, keyword_names.get()));
  }
}

/// A tuple of the values of a mapping pattern, or None.
Ref Building::match_keys(PyObject* subject, PyObject* keys) {
  const PyObject* get = heap_.type_attribute(Py_TYPE(subject), names().get);
  if (heap_.traits(subject).container != Container::dict || get != compat::type_lookup(&PyDict_Type, names().get)) throw GraphBreak("a mapping pattern over a class of its own");
  std::vector<Ref> values;
  Ref seen = checked(PySet_New(nullptr));
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(keys); ++at) {
    PyObject* key = PyTuple_GET_ITEM(keys, at);
    core_.equality().prepare_key(key, subject);
    if (checked(PySet_Contains(seen.get(), key)) != 0) throw GraphBreak("a mapping pattern checks a key twice");
    checked(PySet_Add(seen.get(), key));
    Ref value = heap_.dict_item(subject, key);
    if (!value) return Ref::borrow(Py_None);
    values.push_back(std::move(value));
  }
  return heap_.born(tuple_of(std::move(values)));
}

namespace {

/// The built-in classes, and their subclasses, whose one positional pattern is matched against the object itself.
bool matches_itself(PyTypeObject* type) {
  for (PyTypeObject* each : {&PyBool_Type, &PyByteArray_Type, &PyBytes_Type, &PyDict_Type, &PyFloat_Type, &PyFrozenSet_Type, &PyLong_Type, &PyList_Type,
                             &PySet_Type, &PyUnicode_Type, &PyTuple_Type})
    if (PyType_IsSubtype(type, each)) return true;
  return false;
}

/// The names of the attributes that a class pattern looks at. What Python refuses breaks the graph: it raises for real.
std::vector<PyObject*> names_in_pattern(PyObject* match_args, int positional, PyObject* keyword_names) {
  std::vector<PyObject*> all;
  if (positional > 0 && (match_args == nullptr || !PyTuple_CheckExact(match_args) || PyTuple_GET_SIZE(match_args) < positional))
    throw GraphBreak("a class pattern with too many positional parts");
  for (int at = 0; at < positional; ++at) all.push_back(PyTuple_GET_ITEM(match_args, at));
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(keyword_names); ++at) all.push_back(PyTuple_GET_ITEM(keyword_names, at));
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (!PyUnicode_CheckExact(all[at])) throw GraphBreak("a class pattern with an attribute name that is no string");
    for (std::size_t before = 0; before < at; ++before)
      if (PyUnicode_Compare(all[at], all[before]) == 0) throw GraphBreak("a class pattern looks at an attribute twice");
  }
  return all;
}

}  // namespace

/// A tuple of the values of a class pattern, or None.
Ref Building::match_class(PyObject* subject, PyObject* type, int positional, PyObject* keyword_names) {
  if (!PyType_Check(type)) throw GraphBreak("a class pattern over something that is no class");
  Arguments asked;
  asked.values = {Ref::borrow(subject), Ref::borrow(type)};
  if (!builtin_isinstance(core_, asked)->is(Py_True)) return Ref::borrow(Py_None);
  std::vector<Ref> values;
  Ref match_args;
  if (positional > 0) {
    if (std::optional<Ref> found = core_.attributes().find(type, names().__match_args__)) match_args = std::move(*found);
    if (!match_args && positional == 1 && matches_itself(reinterpret_cast<PyTypeObject*>(type))) {
      values.push_back(Ref::borrow(subject));
      positional = 0;
    }
  }
  for (PyObject* name : names_in_pattern(match_args.get(), positional, keyword_names)) {
    PyObject* interned = Py_NewRef(name);
    PyUnicode_InternInPlace(&interned);
    const Ref held = Ref::steal(interned);
    std::optional<Ref> value = core_.attributes().find(subject, interned);
    if (!value) return Ref::borrow(Py_None);
    values.push_back(std::move(*value));
  }
  return heap_.born(tuple_of(std::move(values)));
}

}  // namespace tenon::python
