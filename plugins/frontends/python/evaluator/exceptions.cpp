#include "python/evaluator/exceptions.h"

#include <fmt/format.h>

#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

void require_exception_classes(PyObject* classes) {
  const bool many = PyTuple_Check(classes);
  for (Py_ssize_t at = 0; at < (many ? PyTuple_GET_SIZE(classes) : 1); ++at)
    if (!PyExceptionClass_Check(many ? PyTuple_GET_ITEM(classes, at) : classes)) throw GraphBreak("'except' with something that is no class of exceptions");
}

}  // namespace

void Exceptions::op_exception(Frame& f, const Instruction& i) {
  switch (i.op) {
    case Op::push_exc_info: {
      Ref exception = core_.pop();
      push_handled_exception();
      compat::set_handled_exception(exception.get());
      core_.push(std::move(exception));
      return;
    }
    case Op::pop_except: {
      Ref previous = core_.pop();
      core_.dropped().require_no_finalizer({Ref::steal(PyErr_GetHandledException())});
      compat::set_handled_exception(previous.is(Py_None) ? nullptr : previous.get());
      return;
    }
    case Op::check_exc_match: {
      Ref classes = core_.pop();
      heap_.expose(classes.get());
      require_exception_classes(classes.get());
      core_.push(Ref::borrow(PyErr_GivenExceptionMatches(core_.peek(1), classes.get()) ? Py_True : Py_False));
      return;
    }
    case Op::reraise: {
      Ref exception = core_.pop();
      require_born_here(exception.get());
      compat::set_exception(std::move(exception));
      throw PythonError();
    }
    case Op::with_except_start: {
      Ref exception = Ref::borrow(core_.peek(1)), exit = Ref::borrow(core_.peek(4));
      Ref traceback = core_.attributes().load(exception.get(), names().__traceback__);
      core_.push(core_.call_now(exit.get(), {reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get(), traceback.get()}));
      return;
    }
    default: break;
  }
  // stop_iteration_error: 3.12 and later wrap generator bodies in a handler of their own.
  Ref exception = core_.pop();
  (void)f;
  if (PyErr_GivenExceptionMatches(exception.get(), PyExc_StopIteration)) {
    Ref error = heap_.born(checked(PyObject_CallFunction(PyExc_RuntimeError, "s", "generator raised StopIteration")));
    PyException_SetCause(error.get(), Ref(exception).release());
    PyException_SetContext(error.get(), exception.release());
    core_.push(std::move(error));
    return;
  }
  core_.push(std::move(exception));
}

/// Pushes what is being handled, which may be older than the call.
void Exceptions::push_handled_exception() {
  Ref handled = compat::handled_exception();
  if (handled.get() != handled_at_start()) {
    core_.push(handled ? std::move(handled) : Ref::borrow(Py_None));
    return;
  }
  const SourceId source = heap_.sources().part(SourceKind::handled_exception, {});
  if (handled) core_.frame().stack.push_back({std::move(handled), source});
  else core_.push(heap_.enter(source, Py_None));
}

Ref Exceptions::traceback_of(PyObject* exception) {
  Ref traceback = compat::traceback_of(exception);
  if (!traceback) return Ref::borrow(Py_None);
  heap_.raised(traceback.get());
  return traceback;
}

/// The traceback of an older exception must grow by frames that are real.
void Exceptions::require_born_here(PyObject* exception) {
  if (!heap_.is_born(exception)) throw GraphBreak("an exception that is older than the call is raised again");
}

void Exceptions::op_raise(Frame&, const Instruction& i) {
  if (i.arg == 0) {
    Ref handled = compat::handled_exception();
    if (!handled) throw GraphBreak("'raise' without an exception");
    require_born_here(handled.get());
    compat::set_exception(std::move(handled));
    throw PythonError();
  }
  Ref cause = i.arg == 2 ? core_.pop() : Ref();
  Ref exception = core_.pop();
  const auto instance = [&](Ref value) { return PyExceptionClass_Check(value.get()) ? core_.call_now(value.get(), {}) : value; };
  exception = instance(std::move(exception));
  if (!PyExceptionInstance_Check(exception.get())) throw GraphBreak("'raise' of something that is no exception");
  // Raising writes context and traceback into it.
  if (heap_.source_of(exception.get())) throw GraphBreak("an exception that is older than the call is raised");
  if (cause) {
    cause = cause.is(Py_None) ? Ref() : instance(std::move(cause));
    if (cause && !PyExceptionInstance_Check(cause.get())) throw GraphBreak("'raise' from something that is no exception");
    PyException_SetCause(exception.get(), cause.release());
  }
  // As raised from here, so that the context is what is being handled.
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
  throw PythonError();
}

void Exceptions::op_before_with(Frame&) {
  Ref manager = core_.pop();
  PyTypeObject* type = Py_TYPE(manager.get());
  PyObject* enter = heap_.type_attribute(type, names().__enter__);
  PyObject* exit = heap_.type_attribute(type, names().__exit__);
  if (!is_python_function(enter) || !is_python_function(exit)) throw GraphBreak(fmt::format("'with' a {}", type->tp_name));
  for (PyObject* method : {enter, exit})
    if (!heap_.is_born(method)) heap_.make_known(method, heap_.sources().constant(method));
  core_.push(heap_.born(checked(PyMethod_New(exit, manager.get()))));
  Arguments arguments;
  arguments.values.push_back(manager);
  if (std::optional<Ref> result = core_.calls().call(enter, std::move(arguments))) core_.push(std::move(*result));
}

}  // namespace tenon::python
