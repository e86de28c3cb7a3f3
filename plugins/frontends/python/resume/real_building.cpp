// Containers, unpacking and formatting, for real.
#include "python/compat/object_layout.h"
#include "python/resume/real_instruction.h"

namespace tenon::python {
namespace {

bool is_iterable(PyObject* object) { return Py_TYPE(object)->tp_iter != nullptr || PySequence_Check(object); }

/// The same TypeError that CPython gives when a name is given twice or something is no mapping.
void complain_of_merge(PyObject* callable, PyObject* update) {
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return;
  PyErr_Clear();
  if (Ref text = name_of_call(callable)) PyErr_Format(PyExc_TypeError, "%U argument after ** must be a mapping, not %.200s", text.get(), Py_TYPE(update)->tp_name);
}

}  // namespace

Effect RealInstruction::building() {
  const int arg = instruction_.arg;
  PyObject** items = arg > 0 ? &peek(arg) : nullptr;
  switch (instruction_.op) {
    case Op::build_tuple:
    case Op::build_list: {
      const bool tuple = instruction_.op == Op::build_tuple;
      PyObject* made = tuple ? PyTuple_New(arg) : PyList_New(arg);
      for (int at = 0; made && at < arg; ++at) {
        if (tuple) PyTuple_SET_ITEM(made, at, Py_NewRef(items[at]));
        else PyList_SET_ITEM(made, at, Py_NewRef(items[at]));
      }
      return replace(arg, made);
    }
    case Op::build_set: {
      Ref made = Ref::steal(PySet_New(nullptr));
      for (int at = 0; made && at < arg; ++at)
        if (PySet_Add(made.get(), items[at]) < 0) made = {};
      return replace(arg, made.release());
    }
    case Op::build_map:
    case Op::build_const_key_map: return build_map();
    case Op::build_string: {
      Ref parts = Ref::steal(PyTuple_New(arg)), empty = Ref::steal(PyUnicode_FromString(""));
      if (!parts || !empty) return Effect::raised;
      for (int at = 0; at < arg; ++at) PyTuple_SET_ITEM(parts.get(), at, Py_NewRef(items[at]));
      return replace(arg, PyUnicode_Join(empty.get(), parts.get()));
    }
    case Op::build_slice: return replace(arg, PySlice_New(items[0], items[1], arg == 3 ? items[2] : nullptr));
    case Op::unpack_sequence:
    case Op::unpack_ex: return unpack();
    case Op::format_value:
    case Op::format_simple:
    case Op::format_with_spec:
    case Op::convert_value: return format();
    case Op::get_len: {
      const Py_ssize_t size = PyObject_Size(peek(1));
      return size < 0 ? Effect::raised : replace(0, PyLong_FromSsize_t(size));
    }
    case Op::match_mapping: return replace(0, PyBool_FromLong(PyType_HasFeature(Py_TYPE(peek(1)), Py_TPFLAGS_MAPPING)));
    case Op::match_sequence: return replace(0, PyBool_FromLong(PyType_HasFeature(Py_TYPE(peek(1)), Py_TPFLAGS_SEQUENCE)));
    default: return Effect::unknown;
  }
}

Effect RealInstruction::build_map() {
  const int count = instruction_.arg;
  const bool constant_keys = instruction_.op == Op::build_const_key_map;
  const int taken = constant_keys ? count + 1 : 2 * count;
  Ref made = Ref::steal(PyDict_New());
  for (int at = 0; made && at < count; ++at) {
    PyObject* key = constant_keys ? PyTuple_GET_ITEM(peek(1), at) : peek(taken - 2 * at);
    PyObject* value = constant_keys ? peek(taken - at) : peek(taken - 2 * at - 1);
    if (PyDict_SetItem(made.get(), key, value) < 0) made = {};
  }
  return replace(taken, made.release());
}

Effect RealInstruction::extending() {
  const int arg = instruction_.arg;
  switch (instruction_.op) {
    case Op::list_append: return done(1, PyList_Append(peek(arg + 1), peek(1)));
    case Op::set_add: return done(1, PySet_Add(peek(arg + 1), peek(1)));
    case Op::map_add: return done(2, PyDict_SetItem(peek(arg + 2), peek(2), peek(1)));
    case Op::list_extend: {
      if (!is_iterable(peek(1))) {
        PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s", Py_TYPE(peek(1))->tp_name);
        return Effect::raised;
      }
      Ref none = Ref::steal(PyObject_CallMethod(peek(arg + 1), "extend", "O", peek(1)));  // keeps what __iter__ raises
      return done(1, none ? 0 : -1);
    }
    case Op::set_update: {
      Ref none = Ref::steal(PyObject_CallMethod(peek(arg + 1), "update", "O", peek(1)));
      return done(1, none ? 0 : -1);
    }
    case Op::dict_update:
      if (PyDict_Update(peek(arg + 1), peek(1)) == 0) return done(1, 0);
      if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping", Py_TYPE(peek(1))->tp_name);
      return Effect::raised;
    case Op::dict_merge: {
      // A name that is given twice must be named in the error as CPython names it: the interpreter itself does it better.
      if (PyDict_CheckExact(peek(1)) && compat::share_a_key(peek(arg + 1), peek(1))) return Effect::unknown;
      Ref copy = Ref::steal(PyDict_Copy(peek(arg + 1)));
      if (!copy) return Effect::raised;
      if (PyDict_Merge(copy.get(), peek(1), 1) == 0) return done(1, PyDict_Update(peek(arg + 1), copy.get()));
      PyObject* const above_arguments = peek(arg + 3);  // the callable, or from 3.13 on an empty place that follows it
      complain_of_merge(above_arguments ? above_arguments : peek(arg + 4), peek(1));
      return Effect::raised;
    }
    case Op::list_to_tuple: return replace(1, PyList_AsTuple(peek(1)));
    default: return Effect::unknown;
  }
}

Effect RealInstruction::unpack() {
  const bool star = instruction_.op == Op::unpack_ex;
  const int before = star ? instruction_.arg & 0xFF : instruction_.arg, after = star ? instruction_.arg >> 8 : 0;
  if (!is_iterable(peek(1))) {
    PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(peek(1))->tp_name);
    return Effect::raised;
  }
  Ref iterator = Ref::steal(PyObject_GetIter(peek(1))), items = Ref::steal(PyList_New(0));
  if (!iterator || !items) return Effect::raised;
  // One more than wanted is taken, no further: an endless iterator must fail, not run on.
  while (star || PyList_GET_SIZE(items.get()) <= before) {
    Ref item = Ref::steal(PyIter_Next(iterator.get()));
    if (!item && PyErr_Occurred()) return Effect::raised;
    if (!item) break;
    if (PyList_Append(items.get(), item.get()) < 0) return Effect::raised;
  }
  const Py_ssize_t found = PyList_GET_SIZE(items.get());
  if (found < before + after) {
    PyErr_Format(PyExc_ValueError, star ? "not enough values to unpack (expected at least %d, got %zd)" : "not enough values to unpack (expected %d, got %zd)", before + after, found);
    return Effect::raised;
  }
  if (!star && found > before) {
    PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", before);
    return Effect::raised;
  }
  Ref rest = star ? Ref::steal(PyList_GetSlice(items.get(), before, found - after)) : Ref();
  if (star && !rest) return Effect::raised;
  drop(1);
  for (int at = 0; at < after; ++at) push(Py_NewRef(PyList_GET_ITEM(items.get(), found - 1 - at)));
  if (star) push(rest.release());
  for (int at = before; at-- > 0;) push(Py_NewRef(PyList_GET_ITEM(items.get(), at)));
  return Effect::next;
}

Effect RealInstruction::format() {
  // FORMAT_VALUE: two bits of conversion (0 none, 1 str, 2 repr, 3 ascii), bit 2 for a format specification on the stack.
  const Op op = instruction_.op;
  const int has_spec = op == Op::format_with_spec || (op == Op::format_value && (instruction_.arg & 4)) ? 1 : 0;
  const int conversion = op == Op::format_value ? instruction_.arg & 3 : op == Op::convert_value ? instruction_.arg : 0;
  Ref value = Ref::borrow(peek(1 + has_spec));
  if (conversion == 1) value = Ref::steal(PyObject_Str(value.get()));
  if (conversion == 2) value = Ref::steal(PyObject_Repr(value.get()));
  if (conversion == 3) value = Ref::steal(PyObject_ASCII(value.get()));
  if (!value) return Effect::raised;
  if (op == Op::convert_value) return replace(1, value.release());
  return replace(1 + has_spec, PyObject_Format(value.get(), has_spec ? peek(1) : nullptr));
}

}  // namespace tenon::python
