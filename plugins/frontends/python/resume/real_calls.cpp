// Calls and the making of functions, for real.
#include "python/resume/real_instruction.h"

namespace tenon::python {
namespace {

PyFunctionObject* as_function(PyObject* object) { return reinterpret_cast<PyFunctionObject*>(object); }

}  // namespace

Ref name_of_call(PyObject* callable) {
  Ref module = Ref::steal(PyObject_GetAttrString(callable, "__module__")), name = Ref::steal(PyObject_GetAttrString(callable, "__qualname__"));
  PyErr_Clear();
  if (!name) return Ref::steal(PyObject_Str(callable));
  const bool prefixed = module && PyUnicode_Check(module.get()) && PyUnicode_CompareWithASCIIString(module.get(), "builtins") != 0;
  return Ref::steal(prefixed ? PyUnicode_FromFormat("%S.%S()", module.get(), name.get()) : PyUnicode_FromFormat("%S()", name.get()));
}

Effect RealInstruction::call(PyObject* keyword_names) {
  if (instruction_.op == Op::call) return call_with(keyword_names, 0);
  return call_with(peek(1), 1);
}

/// Stack: callable and self in either order (a null where there is no self), the arguments, `extra` entries.
Effect RealInstruction::call_with(PyObject* keyword_names, int extra) {
  const int count = instruction_.arg;
  PyObject** arguments = &peek(count + extra);
  if (count + extra == 0) arguments = &peek(1) + 1;
  PyObject *lower = arguments[-2], *upper = arguments[-1];
  const auto named = static_cast<std::size_t>(keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0);
  const bool has_self = lower != nullptr && upper != nullptr;
  PyObject* callable = lower != nullptr ? lower : upper;
  PyObject** first = has_self ? arguments - 1 : arguments;
  const std::size_t positional = static_cast<std::size_t>(count) - named + (has_self ? 1 : 0);
  PyObject* found = PyObject_Vectorcall(callable, first, positional, named > 0 ? keyword_names : nullptr);
  return replace(count + 2 + extra, found);
}

Effect RealInstruction::call_function_ex() {
  const int has_named = instruction_.arg & 1;
  PyObject *upper = peek(2 + has_named), *lower = peek(3 + has_named);
  PyObject* callable = upper != nullptr ? upper : lower;
  Ref positional = Ref::borrow(peek(1 + has_named));
  if (!PyTuple_CheckExact(positional.get())) {
    if (Py_TYPE(positional.get())->tp_iter == nullptr && !PySequence_Check(positional.get())) {
      if (Ref text = name_of_call(callable)) PyErr_Format(PyExc_TypeError, "%U argument after * must be an iterable, not %.200s", text.get(), Py_TYPE(positional.get())->tp_name);
      return Effect::raised;
    }
    positional = Ref::steal(PySequence_Tuple(positional.get()));
    if (!positional) return Effect::raised;
  }
  Ref named = has_named ? Ref::borrow(peek(1)) : Ref();
  if (named && !PyDict_CheckExact(named.get())) {
    Ref copy = Ref::steal(PyDict_New());
    if (!copy || PyDict_Update(copy.get(), named.get()) < 0) return Effect::raised;
    named = std::move(copy);
  }
  return replace(3 + has_named, PyObject_Call(callable, positional.get(), named.get()));
}

Effect RealInstruction::functions() {
  if (instruction_.op == Op::make_function) {
    Ref code = pop();
    // The flags of 3.11 and 3.12; 3.13 sets the parts by instructions of their own, and its argument is 0.
    const int parts = instruction_.arg;
    Ref closure = parts & 8 ? pop() : Ref(), annotations = parts & 4 ? pop() : Ref();
    Ref by_name = parts & 2 ? pop() : Ref(), defaults = parts & 1 ? pop() : Ref();
    Ref made = Ref::steal(PyFunction_New(code.get(), as_function(compat::function_of(frame_))->func_globals));
    if (!made) return Effect::raised;
    as_function(made.get())->func_closure = closure.release();
    as_function(made.get())->func_annotations = annotations.release();
    as_function(made.get())->func_kwdefaults = by_name.release();
    as_function(made.get())->func_defaults = defaults.release();
    push(made.release());
    return Effect::next;
  }
  if (instruction_.op != Op::set_function_attribute) return Effect::unknown;
  Ref function = pop(), value = pop();
  PyFunctionObject* parts = as_function(function.get());
  PyObject*& part = instruction_.arg == 8 ? parts->func_closure : instruction_.arg == 4 ? parts->func_annotations : instruction_.arg == 2 ? parts->func_kwdefaults : parts->func_defaults;
  part = value.release();
  push(function.release());
  return Effect::next;
}

}  // namespace tenon::python
