#include "python/resume/real_instruction.h"

namespace tenon::python {

Effect RealInstruction::run(PyObject* keyword_names) {
  using Step = Effect (RealInstruction::*)();
  switch (instruction_.op) {
    case Op::call: return call(keyword_names);
    case Op::call_kw: return call(nullptr);
    case Op::call_function_ex: return call_function_ex();
    case Op::return_value: result = pop(); return Effect::returned;
    case Op::return_const: result = Ref::borrow(constant(instruction_.arg)); return Effect::returned;
    default: break;
  }
  // Each family knows its own opcodes, and answers `unknown` for all others.
  static constexpr Step kFamilies[] = {&RealInstruction::jumps,    &RealInstruction::stack,     &RealInstruction::names,    &RealInstruction::attributes,
                                       &RealInstruction::items,    &RealInstruction::operators, &RealInstruction::building, &RealInstruction::extending,
                                       &RealInstruction::functions, &RealInstruction::exceptions};
  for (Step family : kFamilies)
    if (const Effect effect = (this->*family)(); effect != Effect::unknown) return effect;
  return Effect::unknown;
}

Effect RealInstruction::stack() {
  const int arg = instruction_.arg;
  switch (instruction_.op) {
    case Op::nop: return Effect::next;
    case Op::pop_top:
    case Op::end_for: drop(1); return Effect::next;
    case Op::push_null: push(nullptr); return Effect::next;
    case Op::copy: push(Py_XNewRef(peek(arg))); return Effect::next;
    case Op::swap: std::swap(peek(1), peek(arg)); return Effect::next;
    case Op::end_send: {
      Ref value = pop();
      drop(1);
      push(value.release());
      return Effect::next;
    }
    case Op::load_const: push(Py_NewRef(constant(arg))); return Effect::next;
    default: return Effect::unknown;
  }
}

Effect RealInstruction::jumps() {
  const Op op = instruction_.op;
  switch (op) {
    case Op::jump: return jump_if(true);
    case Op::pop_jump_if_none:
    case Op::pop_jump_if_not_none: {
      const bool none = peek(1) == Py_None;
      drop(1);
      return jump_if(none == (op == Op::pop_jump_if_none));
    }
    case Op::pop_jump_if_true:
    case Op::pop_jump_if_false:
    case Op::jump_if_true_or_pop:
    case Op::jump_if_false_or_pop: {
      const int truth = PyObject_IsTrue(peek(1));
      if (truth < 0) return Effect::raised;
      const bool jumps = (truth != 0) == (op == Op::pop_jump_if_true || op == Op::jump_if_true_or_pop);
      const bool pops = op == Op::pop_jump_if_true || op == Op::pop_jump_if_false || !jumps;
      if (pops) drop(1);
      return jump_if(jumps);
    }
    case Op::for_iter: {
      PyObject* iterator = peek(1);
      PyObject* value = Py_TYPE(iterator)->tp_iternext(iterator);
      if (value != nullptr) {
        push(value);
        return Effect::next;
      }
      if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return Effect::raised;
        PyErr_Clear();
      }
      drop(1);
      return jump_if(true);
    }
    case Op::get_iter: return replace(1, PyObject_GetIter(peek(1)));
    default: return Effect::unknown;
  }
}

}  // namespace tenon::python
