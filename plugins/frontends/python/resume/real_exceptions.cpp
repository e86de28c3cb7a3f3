// Raising, handling and `with`, for real.
#include "python/compat/object_layout.h"
#include "python/objects/names.h"
#include "python/resume/real_instruction.h"

namespace tenon::python {
namespace {

bool is_exception_class(PyObject* object) { return PyExceptionClass_Check(object); }

/// Whether something can stand after `except`: a class of exceptions or a tuple of them.
bool check_catchable(PyObject* classes) {
  bool good = is_exception_class(classes);
  if (PyTuple_Check(classes)) {
    good = true;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(classes); ++at) good &= is_exception_class(PyTuple_GET_ITEM(classes, at));
  }
  if (!good) PyErr_SetString(PyExc_TypeError, "catching classes that do not inherit from BaseException is not allowed");
  return good;
}

/// The exception that `raise given` raises, or empty with another one set.
Ref instance_of(PyObject* given, const char* complaint) {
  if (PyExceptionInstance_Check(given)) return Ref::borrow(given);
  if (!PyExceptionClass_Check(given)) {
    PyErr_SetString(PyExc_TypeError, complaint);
    return {};
  }
  Ref made = Ref::steal(PyObject_CallNoArgs(given));
  if (made && !PyExceptionInstance_Check(made.get())) {
    PyErr_Format(PyExc_TypeError, "calling %R should have returned an instance of BaseException, not %R", given, Py_TYPE(made.get()));
    return {};
  }
  return made;
}

/// A special method as the type finds it, bound; empty without an exception when there is none.
Ref special_method(PyObject* object, PyObject* name) {
  PyObject* found = compat::type_lookup(Py_TYPE(object), name);
  if (found == nullptr) return {};
  Ref keep = Ref::borrow(found);
  const descrgetfunc bind = Py_TYPE(found)->tp_descr_get;
  return bind ? Ref::steal(bind(found, object, reinterpret_cast<PyObject*>(Py_TYPE(object)))) : keep;
}

}  // namespace

Effect RealInstruction::exceptions() {
  const int arg = instruction_.arg;
  switch (instruction_.op) {
    case Op::push_exc_info: {
      Ref exception = pop(), previous = compat::handled_exception();
      push(previous ? previous.release() : Py_NewRef(Py_None));
      compat::set_handled_exception(exception.get());
      push(exception.release());
      return Effect::next;
    }
    case Op::pop_except: {
      Ref previous = pop();
      compat::set_handled_exception(previous.is(Py_None) ? nullptr : previous.get());
      return Effect::next;
    }
    case Op::check_exc_match: {
      if (!check_catchable(peek(1))) return Effect::raised;
      return replace(1, PyBool_FromLong(PyErr_GivenExceptionMatches(peek(2), peek(1))));
    }
    case Op::reraise:
      // The line that the frame shows is that of the first raise.
      if (arg > 0) compat::set_position(frame_, static_cast<int>(PyLong_AsLong(peek(arg + 1))), compat::Position::running);
      compat::set_exception(pop());
      return Effect::reraised;
    case Op::raise_varargs: return raise();
    case Op::before_with: return enter_with();
    case Op::with_except_start: {
      PyObject *exception = peek(1), *exit = peek(4);
      Ref traceback = Ref::steal(PyException_GetTraceback(exception));
      return replace(0, PyObject_CallFunctionObjArgs(exit, reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception, traceback ? traceback.get() : Py_None, nullptr));
    }
    default: return Effect::unknown;
  }
}

Effect RealInstruction::raise() {
  if (instruction_.arg == 0) {
    Ref handled = compat::handled_exception();
    if (!handled) {
      PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
      return Effect::raised;
    }
    compat::set_exception(std::move(handled));
    return Effect::reraised;
  }
  Ref cause = instruction_.arg == 2 ? pop() : Ref(), given = pop();
  Ref exception = instance_of(given.get(), "exceptions must derive from BaseException");
  if (!exception) return Effect::raised;
  if (cause) {
    if (cause.is(Py_None)) cause = {};
    else cause = instance_of(cause.get(), "exception causes must derive from BaseException");
    if (PyErr_Occurred()) return Effect::raised;
    PyException_SetCause(exception.get(), cause.release());
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
  return Effect::raised;
}

Effect RealInstruction::enter_with() {
  PyObject* manager = peek(1);
  const char* type = Py_TYPE(manager)->tp_name;
  Ref enter = special_method(manager, python::names().__enter__);
  if (!enter) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the context manager protocol", type);
    return Effect::raised;
  }
  Ref exit = special_method(manager, python::names().__exit__);
  if (!exit) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the context manager protocol (missed __exit__ method)", type);
    return Effect::raised;
  }
  // The manager stays where it is until it has been entered; then its exit method takes its place.
  PyObject* entered = PyObject_CallNoArgs(enter.get());
  if (entered == nullptr) return Effect::raised;
  drop(1);
  push(exit.release());
  push(entered);
  return Effect::next;
}

}  // namespace tenon::python
