#include "python/evaluator/generators.h"


#include <new>

#include "python/compat/bytecode.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"
#include "python/objects/object_type.h"
#include "python/segments/dropped_generator.h"

namespace tenon::python {
namespace {

struct Generator {
  PyObject_HEAD
  std::unique_ptr<Frame> frame;
  bool running;
};

Generator* self_of(PyObject* object) { return reinterpret_cast<Generator*>(object); }

[[noreturn]] void raise_plain(PyObject* type, const char* text) {
  PyErr_SetString(type, text);
  throw PythonError();
}

/// What every way into a generator asks first.
void require_not_running(PyObject* generator) {
  if (self_of(generator)->running) raise_plain(PyExc_ValueError, "generator already executing");
}

/// Whether nothing of the body has run yet.
bool is_at_start(const Frame& frame) { return frame.instruction().op == Op::return_generator; }

/// Runs `body` for C code that called into the generator.
template <class Body>
PyObject* in_capture(Body body) {
  Evaluator* evaluator = current_evaluator();
  if (evaluator == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "a generator of a capture is used after the capture");
    return nullptr;
  }
  return guarded([&] { return body(*evaluator); });
}

PyObject* stop(const Ref& result) {
  set_stop_iteration(result.get());
  return nullptr;
}

PyObject* iternext(PyObject* self) {
  return in_capture([&](Evaluator& evaluator) -> PyObject* {
    Ref result;
    Ref value = evaluator.generators().resume(self, Ref::borrow(Py_None), &result);
    return value ? value.release() : (result && !result.is(Py_None) ? stop(result) : nullptr);
  });
}

PyObject* send(PyObject* self, PyObject* sent) {
  return in_capture([&](Evaluator& evaluator) -> PyObject* {
    const std::unique_ptr<Frame>& frame = self_of(self)->frame;
    if (sent != Py_None && frame && is_at_start(*frame)) raise_plain(PyExc_TypeError, "can't send non-None value to a just-started generator");
    Ref result;
    Ref value = evaluator.generators().resume(self, Ref::borrow(sent), &result);
    return value ? value.release() : stop(result);
  });
}

/// What `throw` is to raise. Its three arguments are those of `__exit__`, which hands them on: class, exception, traceback of that.
Ref exception_of(Evaluator& evaluator, PyObject* const* args, Py_ssize_t count) {
  const bool handed_on = (count == 2 || count == 3) && PyExceptionInstance_Check(args[1]) && PyExceptionInstance_Class(args[1]) == args[0];
  if (count != 1 && !handed_on) throw GraphBreak("throw() of a generator with unusual arguments");
  PyObject* given = handed_on ? args[1] : args[0];
  if (PyExceptionInstance_Check(given)) return Ref::borrow(given);
  if (!PyExceptionClass_Check(given)) throw GraphBreak("what is thrown into a generator is no exception");
  Ref made = evaluator.call_now(given, {});
  if (!PyExceptionInstance_Check(made.get())) throw GraphBreak("what is thrown into a generator makes no exception");
  return made;
}

PyObject* throw_in(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return in_capture([&](Evaluator& evaluator) -> PyObject* {
    require_not_running(self);
    Ref result;
    Ref value = evaluator.generators().throw_into(self, exception_of(evaluator, args, count), &result);
    return value ? value.release() : stop(result);
  });
}

PyObject* close(PyObject* self, PyObject*) {
  return in_capture([&](Evaluator& evaluator) -> PyObject* {
    require_not_running(self);
    std::unique_ptr<Frame>& frame = self_of(self)->frame;
    if (frame && is_at_start(*frame)) frame.reset();
    if (!frame) Py_RETURN_NONE;
    Ref result;
    try {
      if (evaluator.generators().throw_into(self, checked(PyObject_CallNoArgs(PyExc_GeneratorExit)), &result)) raise_plain(PyExc_RuntimeError, "generator ignored GeneratorExit");
    } catch (const PythonError&) {
      if (!PyErr_ExceptionMatches(PyExc_GeneratorExit) && !PyErr_ExceptionMatches(PyExc_StopIteration)) throw;
      PyErr_Clear();
    }
    if (result && compat::close_gives_result()) return result.release();
    Py_RETURN_NONE;
  });
}

void deallocate(PyObject* self) {
  const std::unique_ptr<Frame>& frame = self_of(self)->frame;
  if (frame && has_work_left(*frame) && current_evaluator() != nullptr) current_evaluator()->fail_later("a generator is dropped inside a 'try' or 'with'");
  self_of(self)->frame.~unique_ptr<Frame>();
  Py_TYPE(self)->tp_free(self);
}

PyMethodDef kMethods[] = {
    {"send", send, METH_O, nullptr},
    {"throw", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(throw_in)), METH_FASTCALL, nullptr},
    {"close", close, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject* generator_type() {
  return static_type<Generator>("Generator", [](PyTypeObject& type) {
    type.tp_iter = PyObject_SelfIter;
    type.tp_iternext = iternext;
    type.tp_methods = kMethods;
    type.tp_dealloc = deallocate;
  });
}

}  // namespace

bool is_evaluated_generator(PyObject* object) { return Py_TYPE(object) == generator_type(); }

Ref make_generator(std::unique_ptr<Frame> frame) {
  PyTypeObject* type = generator_type();
  Ref object = checked(type->tp_alloc(type, 0));
  new (&self_of(object.get())->frame) std::unique_ptr<Frame>(std::move(frame));
  return object;
}

std::unique_ptr<Frame>& generator_frame(PyObject* generator) { return self_of(generator)->frame; }

// ---- the evaluator's side

namespace {

/// PEP 479: a StopIteration that leaves the body of a generator becomes a RuntimeError.
[[noreturn]] void raise_from_stop_iteration() {
  Ref stopped = compat::take_exception();
  Ref error = checked(PyObject_CallFunction(PyExc_RuntimeError, "s", "generator raised StopIteration"));
  PyException_SetCause(error.get(), Ref(stopped).release());
  PyException_SetContext(error.get(), stopped.release());
  compat::set_exception(std::move(error));
  throw PythonError();
}

/// The iterator that a suspended generator delegates to (`yield from`), or null. The RESUME after such a yield says so.
PyObject* delegate_of(const Frame& frame) {
  const Instruction& next = frame.code->instructions[frame.next];
  const bool delegates = next.op == Op::nop && (next.arg & 3) >= 2 && frame.current > 0 && frame.code->instructions[frame.current - 1].op == Op::send;
  return delegates ? frame.stack.back().object.get() : nullptr;
}

}  // namespace

/// Throws into the delegate first. Whether that has settled the matter: it yielded (`given`), or it returned and the frame goes on.
bool Generators::throw_into_delegate(PyObject* generator, PyObject* exception, Ref* given) {
  Frame& f = *generator_frame(generator);
  PyObject* receiver = delegate_of(f);
  if (receiver == nullptr) return false;
  if (!is_evaluated_generator(receiver)) {
    if (!heap_.traits(receiver).iterator) throw GraphBreak("an exception is thrown through 'yield from' into an object of a class");
    return false;
  }
  if (PyErr_GivenExceptionMatches(exception, PyExc_GeneratorExit)) {
    checked(PyObject_CallMethod(receiver, "close", nullptr));
    return false;
  }
  Ref result;
  *given = throw_into(receiver, Ref::borrow(exception), &result);
  if (*given) return true;
  // It returned: the `yield from` has its value, as after the last send.
  const Instruction& send = f.code->instructions[f.current - 1];
  if (!(send.flags & kKeepReceiver)) f.stack.pop_back();
  f.next = send.target;
  *given = {};
  f.stack.push_back({result ? std::move(result) : Ref::borrow(Py_None), {}});
  return true;
}

void Generators::op_return_generator(Frame& f) {
  if (f.code->code()->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)) throw GraphBreak("a coroutine", kAwaitHint);
  std::unique_ptr<Frame> frame = core_.take_frame();
  const Completion completion = frame->completion;
  Ref generator = heap_.born(make_generator(std::move(frame)));
  if (completion == Completion::stop) core_.stop_run(std::move(generator));
  else if (completion == Completion::push) core_.push(std::move(generator));
  else throw GraphBreak("a constructor that is a generator");
}

void Generators::op_yield(Frame& f) {
  Ref value = core_.pop();
  std::unique_ptr<Frame> frame = core_.take_frame();
  PyObject* generator = f.generator;
  if (generator == nullptr) throw GraphBreak("a generator function is the compiled function");
  generator_frame(generator) = std::move(frame);
  core_.stop_run(std::move(value));
}

Ref Generators::resume(PyObject* generator, Ref value, Ref* result) {
  require_not_running(generator);
  std::unique_ptr<Frame> frame = std::move(generator_frame(generator));
  if (!frame) return {};
  Frame& f = *frame;
  Ref keep = Ref::borrow(generator);
  struct Running {
    bool& flag;
    ~Running() { flag = false; }
  } running{self_of(generator)->running = true};
  f.generator = generator;
  f.completion = Completion::stop;
  const std::size_t base = core_.frames().size();
  core_.push_frame(std::move(frame));
  if (value) f.stack.push_back({std::move(value), {}});
  Ref outer = compat::handled_exception();
  struct Restore {
    Ref& exception;
    ~Restore() { compat::set_handled_exception(exception.get()); }
  } restore{outer};
  Ref given;
  try {
    given = core_.run(base);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) throw;
    raise_from_stop_iteration();
  }
  if (generator_frame(generator)) return given;  // it yielded
  if (result != nullptr) *result = std::move(given);
  return {};
}

Ref Generators::throw_into(PyObject* generator, Ref exception, Ref* result) {
  if (heap_.source_of(exception.get())) throw GraphBreak("an exception that is older than the call is thrown into a generator");
  std::unique_ptr<Frame>& suspended = generator_frame(generator);
  if (!suspended) {
    compat::set_exception(std::move(exception));
    throw PythonError();
  }
  Frame& f = *suspended;
  Ref given;
  try {
    if (throw_into_delegate(generator, exception.get(), &given)) return given ? given : resume(generator, {}, result);
  } catch (const PythonError&) {
    exception = compat::take_exception();  // the delegate raised: so does the `yield from`
  }
  const Handler* handler = f.code->handler_of(f.current);
  if (handler == nullptr) {
    suspended.reset();
    compat::set_exception(std::move(exception));
    throw PythonError();
  }
  heap_.raised(exception.get());
  // As unwinding would: the handler starts with the exception on its stack, and no sent value below it.
  f.stack.resize(handler->depth);
  if (handler->push_lasti) f.stack.push_back({checked(PyLong_FromLong(f.instruction().unit)), {}});
  f.next = handler->target;
  return resume(generator, std::move(exception), result);
}

void Generators::op_cleanup_throw() {
  Ref exception = core_.pop();
  if (!PyErr_GivenExceptionMatches(exception.get(), PyExc_StopIteration)) {
    compat::set_exception(std::move(exception));
    throw PythonError();
  }
  core_.pop();
  core_.pop();
  core_.push(Ref::borrow(Py_None));
  core_.push(heap_.adopt(checked(PyObject_GetAttr(exception.get(), names().value))));
}

void Generators::op_send(Frame& f, const Instruction& i) {
  Ref value = core_.pop();
  Ref receiver = Ref::borrow(core_.peek(1));
  Ref result, given;
  if (is_evaluated_generator(receiver.get())) given = resume(receiver.get(), std::move(value), &result);
  else if (value.is(Py_None)) given = core_.iteration().next_of(receiver.get(), &result);
  else throw GraphBreak("a value is sent through 'yield from'");
  if (given) {
    core_.push(std::move(given));
    return;
  }
  if (!(i.flags & kKeepReceiver)) f.stack.pop_back();
  core_.push(result ? std::move(result) : Ref::borrow(Py_None));
  f.next = i.target;
}

}  // namespace tenon::python
