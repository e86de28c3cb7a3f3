// The self-test of real frames: makes them, looks at them from above, resumes them, lets one escape.
#include <opcode.h>

#include "python/compat/object_layout.h"
#include "python/compat/real_frame.h"

namespace tenon::python::compat {
namespace {

constexpr const char* kProbe =
    "def probe(a, b):\n"
    "    c = a - b\n"
    "    return c * 2\n";

Ref make_probe() {
  Ref globals = Ref::steal(PyDict_New());
  if (!globals || PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins()) < 0) return {};
  Ref done = Ref::steal(PyRun_String(kProbe, Py_file_input, globals.get(), globals.get()));
  return done ? Ref::borrow(PyDict_GetItemString(globals.get(), "probe")) : Ref();
}

/// The code unit of the first arithmetic instruction, or -1.
int first_operator(PyCodeObject* code) {
  Ref bytes = Ref::steal(PyCode_GetCode(code));
  if (!bytes) return -1;
  const auto* raw = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes.get()));
  for (Py_ssize_t at = 0; at < PyBytes_GET_SIZE(bytes.get()) / 2; ++at)
    if (raw[2 * at] == BINARY_OP) return static_cast<int>(at);
  return -1;
}

bool is_number(PyObject* object, long expected) { return object != nullptr && PyLong_Check(object) && PyLong_AsLong(object) == expected; }

/// The probe stopped before its first operator, as the innermost frame of the thread.
RealFrame* stopped_probe(PyObject* probe, Position position) {
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(probe));
  const int unit = first_operator(code);
  RealFrame* frame = unit < 0 ? nullptr : push_frame(probe);
  if (frame == nullptr) return nullptr;
  PyObject** slots = slots_of(frame);
  const int locals = code->co_nlocalsplus;
  slots[0] = PyLong_FromLong(9);
  slots[1] = PyLong_FromLong(2);
  slots[locals] = PyLong_FromLong(9);
  slots[locals + 1] = PyLong_FromLong(2);
  set_stack_size(frame, 2);
  set_position(frame, unit, position);
  return frame;
}

bool resumes(PyObject* probe) {
  RealFrame* frame = stopped_probe(probe, Position::next);
  if (frame == nullptr) return false;
  Ref result = Ref::steal(finish_frame(frame));
  return is_number(result.get(), 14);
}

/// A callee sees line and locals; the frame object that it keeps stays readable, and knows who called.
bool is_seen(PyObject* probe) {
  PyFrameObject* caller = PyEval_GetFrame();
  RealFrame* frame = stopped_probe(probe, Position::running);
  if (frame == nullptr) return false;
  auto object = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  auto* seen = reinterpret_cast<PyFrameObject*>(object.get());
  const bool line = PyFrame_GetLineNumber(seen) == 2;
  pop_frame(frame);
  Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(seen)));
  Ref locals = Ref::steal(PyFrame_GetLocals(seen)), back = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(seen)));
  Ref name = Ref::steal(PyUnicode_FromString("a"));
  Ref value = locals && name ? Ref::steal(PyObject_GetItem(locals.get(), name.get())) : Ref();
  return line && code.is(PyFunction_GET_CODE(probe)) && is_number(value.get(), 9) && back.is(reinterpret_cast<PyObject*>(caller)) &&
         PyEval_GetFrame() == caller;
}

bool is_in_tracebacks(PyObject* probe) {
  RealFrame* frame = stopped_probe(probe, Position::running);
  if (frame == nullptr) return false;
  PyErr_SetString(PyExc_ValueError, "probe");
  add_traceback_entry();
  pop_frame(frame);
  Ref exception = take_exception();
  Ref traceback = Ref::steal(PyException_GetTraceback(exception.get()));
  Ref line = traceback ? Ref::steal(PyObject_GetAttrString(traceback.get(), "tb_lineno")) : Ref();
  return is_number(line.get(), 2);
}

}  // namespace

bool real_frames_work() {
  static const bool all = [] {
    Ref probe = make_probe();
    const bool good = probe && resumes(probe.get()) && is_seen(probe.get()) && is_in_tracebacks(probe.get());
    PyErr_Clear();
    return good;
  }();
  return all;
}

}  // namespace tenon::python::compat
