// Containers, strings and slices: built, extended, unpacked, matched.
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

void Evaluator::op_build(Frame& f, const Instruction& i) {
  switch (i.op) {
    case Op::build_tuple: push(heap_.born(tuple_of(pop_many(i.arg)))); return;
    case Op::build_list: push(heap_.born(list_of(pop_many(i.arg)))); return;
    case Op::build_slice: {
      Ref step = i.arg == 3 ? pop() : Ref();
      Ref stop = pop(), start = pop();
      push(heap_.born(checked(PySlice_New(start.get(), stop.get(), step.get()))));
      return;
    }
    case Op::build_string: {
      std::vector<Ref> parts = pop_many(i.arg);
      Ref tuple = tuple_of(std::move(parts)), empty = checked(PyUnicode_FromString(""));
      Ref text = holds_number(tuple.get()) ? recorder_.late_text(checked(PyObject_GetAttrString(empty.get(), "join")).get(), checked(PyTuple_Pack(1, tuple.get())).get()) : Ref();
      if (!text) {
        heap_.expose(tuple.get());  // where one is of numbers that must be known
        text = checked(PyUnicode_Join(empty.get(), tuple.get()));
      }
      push(std::move(text));
      return;
    }
    case Op::build_set: {
      std::vector<Ref> items = pop_many(i.arg);
      Ref set = heap_.born(checked(PySet_New(nullptr)));
      for (const Ref& item : items) add_to_set(set.get(), item.get());
      push(std::move(set));
      return;
    }
    default: break;
  }
  Ref keys = i.op == Op::build_const_key_map ? pop() : Ref();
  std::vector<Ref> items = pop_many(keys ? i.arg : 2 * i.arg);
  Ref dict = heap_.born(checked(PyDict_New()));
  for (int at = 0; at < i.arg; ++at) {
    PyObject* key = keys ? PyTuple_GET_ITEM(keys.get(), at) : items[2 * at].get();
    prepare_key(key, dict.get());
    checked(PyDict_SetItem(dict.get(), key, (keys ? items[at] : items[2 * at + 1]).get()));
  }
  (void)f;
  push(std::move(dict));
}

/// set.add() for a set of this capture. Where an item holds a number that varies, a second one is compared with it.
void Evaluator::add_to_set(PyObject* set, PyObject* item) {
  if (PyObject* only = heap_.loose_item(set)) {
    const Ref held = Ref::borrow(only);
    if (visible_type(item) == visible_type(only) && holds_number(item) && same_or_equal(held.get(), item)) return;
    heap_.tighten(set);
  }
  prepare_key(item, set);
  const bool loosely = PySet_CheckExact(set) && PySet_GET_SIZE(set) == 0 && !heap_.source_of(set) && holds_number(item);
  if (loosely) heap_.add_loosely(set, item);
  else checked(PySet_Add(set, item));
}

/// A comprehension or display that a graph break has cut in two: its container is older than this segment.
bool Evaluator::extend_older(const Instruction& i) {
  const int operands = i.op == Op::map_add ? 2 : 1;
  PyObject* target = peek(i.arg + operands);
  const char* method = method_of(i.op);
  if (!heap_.is_older(target, "an extension")) return false;
  if (method == nullptr) throw GraphBreak("'**' into a dict that is older than the call");
  Arguments arguments;
  arguments.values = pop_many(operands);
  change_older(*this, target, method, std::move(arguments));
  return true;
}

void Evaluator::op_extend(Frame& f, const Instruction& i) {
  if (i.op == Op::list_to_tuple) {
    Ref list = pop();  // older than the segment where a break came before its last item
    Ref tuple = heap_.born(checked(PyTuple_New(heap_.length(list.get()))));
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(tuple.get()); ++at) PyTuple_SET_ITEM(tuple.get(), at, heap_.sequence_item(list.get(), at).release());
    push(std::move(tuple));
    return;
  }
  if (extend_older(i)) return;
  if (i.op == Op::map_add) {
    Ref value = pop(), key = pop();
    prepare_key(key.get(), peek(i.arg));
    checked(PyDict_SetItem(peek(i.arg), key.get(), value.get()));
    return;
  }
  Ref value = pop();
  PyObject* target = peek(i.arg);
  switch (i.op) {
    case Op::list_append: checked(PyList_Append(target, value.get())); return;
    case Op::set_add: add_to_set(target, value.get()); return;
    case Op::list_extend:
      require_iterable(value.get(), "Value after * must be an iterable, not %.200s");
      for (const Ref& item : items_of(value.get())) checked(PyList_Append(target, item.get()));
      return;
    case Op::set_update:
      for (const Ref& item : items_of(value.get())) add_to_set(target, item.get());
      return;
    default: break;
  }
  (void)f;
  if (heap_.traits(value.get()).container != Container::dict) throw GraphBreak(fmt::format("'**' of a {}", Py_TYPE(value.get())->tp_name));
  heap_.expose_keys(value.get());
  Ref items = items_past_override(value.get()), seen = checked(PyDict_New());
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(items.get()); ++at) {
    PyObject* key = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), at), 0);
    checked(PyDict_SetItem(seen.get(), key, heap_.dict_item(value.get(), key).get()));
  }
  if (i.op == Op::dict_merge && compat::share_a_key(target, seen.get())) throw GraphBreak("an argument given twice");
  checked(PyDict_Update(target, seen.get()));
}

void Evaluator::require_iterable(PyObject* value, const char* complaint) {
  if (may_be_iterated(value)) return;
  if (heap_.traits(value).python_class) heap_.guard_special_methods(Py_TYPE(value));  // none of which is `__iter__` so far
  PyErr_Format(PyExc_TypeError, complaint, visible_type(value)->tp_name);
  throw PythonError();
}

void Evaluator::op_unpack(Frame&, const Instruction& i) {
  Ref value = pop();
  require_iterable(value.get(), "cannot unpack non-iterable %.200s object");
  // One more says already that there are too many.
  std::vector<Ref> items = i.op == Op::unpack_sequence ? items_of(value.get(), static_cast<std::size_t>(i.arg) + 1) : items_of(value.get());
  const auto found = static_cast<Py_ssize_t>(items.size());
  if (i.op == Op::unpack_sequence) {
    if (found < i.arg) raise_unpack("not enough values to unpack (expected %zd, got %zd)", i.arg, found);
    if (found > i.arg) raise_unpack("too many values to unpack (expected %zd)", i.arg, found);
    for (std::size_t at = items.size(); at-- > 0;) push(std::move(items[at]));
    return;
  }
  const int before = i.arg & 0xFF, after = i.arg >> 8;
  if (found < before + after) raise_unpack("not enough values to unpack (expected at least %zd, got %zd)", before + after, found);
  for (int at = 0; at < after; ++at) push(std::move(items[found - 1 - at]));
  push(heap_.born(list_of({std::make_move_iterator(items.begin() + before), std::make_move_iterator(items.end() - after)})));
  for (int at = before; at-- > 0;) push(std::move(items[at]));
}

void Evaluator::op_format(Frame&, const Instruction& i) {
  // FORMAT_VALUE: two bits of conversion (0 none, 1 str, 2 repr, 3 ascii), bit 2 for a format specification on the stack.
  const bool has_spec = i.op == Op::format_with_spec || (i.op == Op::format_value && (i.arg & 4));
  const int conversion = i.op == Op::format_value ? i.arg & 3 : i.op == Op::convert_value ? i.arg : 0;
  Ref spec = has_spec ? pop() : Ref();
  Ref value = pop();
  if (conversion == 1) value = to_string(value.get(), names().__str__);
  if (conversion == 2) value = to_string(value.get(), names().__repr__);
  if (conversion == 3) {
    Ref text = to_string(value.get(), names().__repr__);
    Ref bytes = checked(PyUnicode_AsEncodedString(text.get(), "ascii", "backslashreplace"));
    value = checked(PyUnicode_DecodeASCII(PyBytes_AS_STRING(bytes.get()), PyBytes_GET_SIZE(bytes.get()), "strict"));
  }
  if (i.op == Op::convert_value) {
    push(std::move(value));
    return;
  }
  push(formatted(value.get(), spec.get()));
}

/// Whether the methods with which a tensor formats itself are the library's: that stays so, or there is another capture.
bool Evaluator::is_formatted_by_library(PyObject* tensor) {
  PyTypeObject* type = recorder_.apparent_type(tensor);
  if (!heap_.traits(type).python_class) return true;
  static PyObject* const methods[] = {names().__format__, PyUnicode_InternFromString("dim"), PyUnicode_InternFromString("item")};
  return std::ranges::all_of(methods, [&](PyObject* name) {
    PyObject* found = heap_.type_attribute(type, name);
    return found != nullptr && recorder_.is_own(found);
  });
}

/// format(value, spec), where no `spec` is an empty one.
Ref Evaluator::formatted(PyObject* value, PyObject* spec) {
  Ref empty = checked(PyUnicode_FromString(""));
  if (Ref text = late_text("builtins", "format", {value, spec ? spec : empty.get()})) return text;
  const TypeTraits& traits = heap_.traits(value);
  if (traits.role == Recorder::Role::stand_in) {
    if (is_formatted_by_library(value))
      if (Ref number = recorder_.number_in_format(value, spec ? spec : empty.get())) return formatted(number.get(), spec);
    throw GraphBreak("the values of a tensor are turned into text");
  }
  PyObject* method = traits.python_class ? heap_.type_attribute(Py_TYPE(value), names().__format__) : nullptr;
  if (is_python_function(method)) {
    Ref text = call_now(method, {value, spec ? spec : empty.get()});
    if (!PyType_IsSubtype(visible_type(text.get()), &PyUnicode_Type)) {
      PyErr_Format(PyExc_TypeError, "__format__ must return a str, not %.200s", visible_type(text.get())->tp_name);
      throw PythonError();
    }
    return text;
  }
  const bool plain = spec != nullptr && PyUnicode_Check(spec) && PyUnicode_GET_LENGTH(spec) == 0;
  const bool usual = compat::type_lookup(Py_TYPE(value), names().__format__) == compat::type_lookup(&PyBaseObject_Type, names().__format__);
  if (!traits.atom && (spec == nullptr || (plain && usual))) return to_string(value, names().__str__);
  heap_.expose(value);
  require_plain(value);
  return checked(PyObject_Format(value, spec));
}

void Evaluator::op_match(Frame&, const Instruction& i) {
  switch (i.op) {
    case Op::get_len: push(checked(PyLong_FromSsize_t(length(peek(1))))); return;
    case Op::match_mapping:
    case Op::match_sequence: {  // arrays are sequences from NumPy 2.5 on
      const unsigned long feature = i.op == Op::match_mapping ? Py_TPFLAGS_MAPPING : Py_TPFLAGS_SEQUENCE;
      push(Ref::borrow(PyType_HasFeature(visible_type(peek(1)), feature) ? Py_True : Py_False));
      return;
    }
    default: break;
  }
  if (i.op == Op::match_keys) {
    push(match_keys(peek(2), peek(1)));
  } else {
    Ref keyword_names = pop(), type = pop(), subject = pop();
    push(match_class(subject.get(), type.get(), i.arg, keyword_names.get()));
  }
}

/// A tuple of the values of a mapping pattern, or None.
Ref Evaluator::match_keys(PyObject* subject, PyObject* keys) {
  const PyObject* get = heap_.type_attribute(Py_TYPE(subject), names().get);
  if (heap_.traits(subject).container != Container::dict || get != compat::type_lookup(&PyDict_Type, names().get)) throw GraphBreak("a mapping pattern over a class of its own");
  std::vector<Ref> values;
  Ref seen = checked(PySet_New(nullptr));
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(keys); ++at) {
    PyObject* key = PyTuple_GET_ITEM(keys, at);
    prepare_key(key, subject);
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
Ref Evaluator::match_class(PyObject* subject, PyObject* type, int positional, PyObject* keyword_names) {
  if (!PyType_Check(type)) throw GraphBreak("a class pattern over something that is no class");
  Arguments asked;
  asked.values = {Ref::borrow(subject), Ref::borrow(type)};
  if (!builtin_isinstance(*this, asked)->is(Py_True)) return Ref::borrow(Py_None);
  std::vector<Ref> values;
  Ref match_args;
  if (positional > 0) {
    if (std::optional<Ref> found = find_attribute(type, names().__match_args__)) match_args = std::move(*found);
    if (!match_args && positional == 1 && matches_itself(reinterpret_cast<PyTypeObject*>(type))) {
      values.push_back(Ref::borrow(subject));
      positional = 0;
    }
  }
  for (PyObject* name : names_in_pattern(match_args.get(), positional, keyword_names)) {
    PyObject* interned = Py_NewRef(name);
    PyUnicode_InternInPlace(&interned);
    const Ref held = Ref::steal(interned);
    std::optional<Ref> value = find_attribute(subject, interned);
    if (!value) return Ref::borrow(Py_None);
    values.push_back(std::move(*value));
  }
  return heap_.born(tuple_of(std::move(values)));
}

}  // namespace tenon::python
