// Operators, attributes and items, for real.
#include "python/decode/operator_function.h"
#include "python/resume/real_instruction.h"

namespace tenon::python {

Effect RealInstruction::operators() {
  const int arg = instruction_.arg;
  switch (instruction_.op) {
    case Op::binary_op: return replace(2, operator_function(arg)(peek(2), peek(1)));
    case Op::compare_op: return replace(2, PyObject_RichCompare(peek(2), peek(1), arg));
    case Op::is_op: return replace(2, PyBool_FromLong((peek(2) == peek(1)) != (arg != 0)));
    case Op::contains_op: {
      const int found = PySequence_Contains(peek(1), peek(2));
      return found < 0 ? Effect::raised : replace(2, PyBool_FromLong((found != 0) != (arg != 0)));
    }
    case Op::unary_negative: return replace(1, PyNumber_Negative(peek(1)));
    case Op::unary_positive: return replace(1, PyNumber_Positive(peek(1)));
    case Op::unary_invert: return replace(1, PyNumber_Invert(peek(1)));
    case Op::unary_not:
    case Op::to_bool: {
      const int truth = PyObject_IsTrue(peek(1));
      return truth < 0 ? Effect::raised : replace(1, PyBool_FromLong((truth != 0) == (instruction_.op == Op::to_bool)));
    }
    default: return Effect::unknown;
  }
}

Effect RealInstruction::attributes() {
  const int arg = instruction_.arg;
  switch (instruction_.op) {
    case Op::load_attr: return replace(1, PyObject_GetAttr(peek(1), name(arg)));
    case Op::load_method: {
      PyObject* found = PyObject_GetAttr(peek(1), name(arg));
      if (found == nullptr) return Effect::raised;
      drop(1);
      if (!(instruction_.flags & kSelfAfter)) push(nullptr);
      push(found);
      if (instruction_.flags & kSelfAfter) push(nullptr);
      return Effect::next;
    }
    case Op::load_super_attr: return load_super_attribute();
    case Op::store_attr: return done(2, PyObject_SetAttr(peek(1), name(arg), peek(2)));
    case Op::delete_attr: return done(1, PyObject_SetAttr(peek(1), name(arg), nullptr));
    default: return Effect::unknown;
  }
}

/// Stack: the global `super`, the class, the object.
Effect RealInstruction::load_super_attribute() {
  const bool two = (instruction_.flags & kTwoArgumentSuper) != 0;
  Ref super = Ref::steal(two ? PyObject_CallFunctionObjArgs(peek(3), peek(2), peek(1), nullptr) : PyObject_CallNoArgs(peek(3)));
  PyObject* found = super ? PyObject_GetAttr(super.get(), name(instruction_.arg)) : nullptr;
  if (found == nullptr) return Effect::raised;
  drop(3);
  if (instruction_.flags & kPushNullBefore) push(nullptr);
  push(found);
  if (instruction_.flags & kPushNullAfter) push(nullptr);
  return Effect::next;
}

Effect RealInstruction::items() {
  switch (instruction_.op) {
    case Op::binary_subscr: return replace(2, PyObject_GetItem(peek(2), peek(1)));
    case Op::store_subscr: return done(3, PyObject_SetItem(peek(2), peek(1), peek(3)));
    case Op::delete_subscr: return done(2, PyObject_DelItem(peek(2), peek(1)));
    case Op::binary_slice: {
      Ref slice = Ref::steal(PySlice_New(peek(2), peek(1), nullptr));
      return slice ? replace(3, PyObject_GetItem(peek(3), slice.get())) : Effect::raised;
    }
    case Op::store_slice: {
      Ref slice = Ref::steal(PySlice_New(peek(2), peek(1), nullptr));
      return slice ? done(4, PyObject_SetItem(peek(3), slice.get(), peek(4))) : Effect::raised;
    }
    default: return Effect::unknown;
  }
}

}  // namespace tenon::python
