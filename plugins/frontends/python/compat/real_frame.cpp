#include "python/compat/real_frame.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "python/compat/object_layout.h"

// CPython declares its frames in headers that C++ cannot include: the parts that are used are repeated here, and tried by the self-test.
namespace tenon::python::compat {

using CodeUnit = std::uint16_t;  // `_Py_CODEUNIT`

/// `_PyInterpreterFrame` of CPython's pycore_frame.h.
struct RealFrame {
#if PY_VERSION_HEX < 0x030C0000
  PyObject* function;
  PyObject* globals;
  PyObject* builtins;
  PyObject* locals;
  PyObject* code;
  PyObject* frame_object;
  RealFrame* previous;
  CodeUnit* position;  // one before the instruction that runs next
  int stack_top;
  bool is_entry;
  char owner;
#else
  PyObject* code;
  RealFrame* previous;
  PyObject* function;
  PyObject* globals;
  PyObject* builtins;
  PyObject* locals;
  PyObject* frame_object;
  CodeUnit* position;  // 3.12: one before the instruction that runs next; 3.13: the instruction that runs
  int stack_top;
  std::uint16_t return_offset;
  char owner;
#endif
  PyObject* slots[1];
};

namespace {

constexpr int kWordsBeforeSlots = offsetof(RealFrame, slots) / sizeof(PyObject*);
constexpr char kOwnedByThread = 0, kOwnedByFrameObject = 2;

/// `PyFrameObject` of the same header.
struct FrameObject {
  PyObject_HEAD
  PyFrameObject* back;
  RealFrame* frame;
  PyObject* trace;
  int line;
  char trace_lines;
  char trace_opcodes;
#if PY_VERSION_HEX < 0x030D0000
  char fast_as_locals;
#else
  PyObject* extra_locals;
  PyObject* locals_cache;
#endif
  PyObject* data[1];
};

_PyInterpreterFrame* as_cpython(RealFrame* frame) { return reinterpret_cast<_PyInterpreterFrame*>(frame); }

#if PY_VERSION_HEX < 0x030D0000
RealFrame* innermost(PyThreadState* thread) { return reinterpret_cast<RealFrame*>(thread->cframe->current_frame); }
void set_innermost(PyThreadState* thread, RealFrame* frame) { thread->cframe->current_frame = as_cpython(frame); }
#else
RealFrame* innermost(PyThreadState* thread) { return reinterpret_cast<RealFrame*>(thread->current_frame); }
void set_innermost(PyThreadState* thread, RealFrame* frame) { thread->current_frame = as_cpython(frame); }
#endif

#if PY_VERSION_HEX < 0x030C0000
int& recursion_left(PyThreadState* thread) { return thread->recursion_remaining; }
#else
int& recursion_left(PyThreadState* thread) { return thread->py_recursion_remaining; }
#endif

PyObjectArenaAllocator arena() {
  PyObjectArenaAllocator allocator;
  PyObject_GetArenaAllocator(&allocator);
  return allocator;
}

/// `_PyThreadState_PushFrame` is not exported by every version, so its growth by chunks is repeated here.
RealFrame* take_space(PyThreadState* thread, int size) {
  if (thread->datastack_top != nullptr && size < thread->datastack_limit - thread->datastack_top) {
    PyObject** base = thread->datastack_top;
    thread->datastack_top += size;
    return reinterpret_cast<RealFrame*>(base);
  }
  std::size_t bytes = 16 * 1024;
  while (bytes < sizeof(PyObject*) * (static_cast<std::size_t>(size) + 1000)) bytes *= 2;
  const PyObjectArenaAllocator allocator = arena();
  auto* chunk = static_cast<_PyStackChunk*>(allocator.alloc(allocator.ctx, bytes));
  if (chunk == nullptr) {
    PyErr_NoMemory();
    return nullptr;
  }
  chunk->previous = thread->datastack_chunk;
  chunk->size = bytes;
  chunk->top = 0;
  if (thread->datastack_chunk) thread->datastack_chunk->top = static_cast<std::size_t>(thread->datastack_top - &thread->datastack_chunk->data[0]);
  thread->datastack_chunk = chunk;
  thread->datastack_limit = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(chunk) + bytes);
  PyObject** base = &chunk->data[chunk->previous == nullptr];  // so that the first chunk is never given back
  thread->datastack_top = base + size;
  return reinterpret_cast<RealFrame*>(base);
}

void give_space_back(PyThreadState* thread, RealFrame* frame) {
  auto** base = reinterpret_cast<PyObject**>(frame);
  _PyStackChunk* chunk = thread->datastack_chunk;
  if (base != &chunk->data[0]) {
    thread->datastack_top = base;
    return;
  }
  _PyStackChunk* previous = chunk->previous;
  thread->datastack_top = &previous->data[previous->top];
  thread->datastack_chunk = previous;
  thread->datastack_limit = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(previous) + previous->size);
  const PyObjectArenaAllocator allocator = arena();
  allocator.free(allocator.ctx, chunk, chunk->size);
}

/// Moves the frame's contents into the frame object that outlives it, as CPython does when a frame ends.
void hand_over(FrameObject* object, RealFrame* frame, PyFrameObject* back) {
  const std::size_t size = reinterpret_cast<char*>(&frame->slots[frame->stack_top]) - reinterpret_cast<char*>(frame);
  auto* kept = reinterpret_cast<RealFrame*>(object->data);
  std::memcpy(kept, frame, size);
  object->frame = kept;
  kept->owner = kOwnedByFrameObject;
  kept->previous = nullptr;
  object->back = back;
  if (!PyObject_GC_IsTracked(reinterpret_cast<PyObject*>(object))) PyObject_GC_Track(object);
}

/// Drops what a frame holds; it must be off the chain, because finalizers may look at that.
void clear(RealFrame* frame) {
  // A frame that has ended keeps its variables for who has its object, and no stack.
  const int locals = reinterpret_cast<PyCodeObject*>(frame->code)->co_nlocalsplus;
  while (frame->stack_top > locals) Py_XDECREF(frame->slots[--frame->stack_top]);
  if (frame->frame_object) {
    auto* object = reinterpret_cast<FrameObject*>(std::exchange(frame->frame_object, nullptr));
    if (Py_REFCNT(object) > 1) {
      PyFrameObject* back = object->back ? nullptr : PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(object));
      hand_over(object, frame, back);
      Py_DECREF(object);
      return;
    }
    Py_DECREF(object);
  }
  for (int at = 0; at < frame->stack_top; ++at) Py_XDECREF(frame->slots[at]);
  Py_XDECREF(frame->locals);
  Py_DECREF(frame->function);
  Py_DECREF(frame->code);
}

}  // namespace

RealFrame* push_frame(PyObject* function) {
  auto* parts = reinterpret_cast<PyFunctionObject*>(function);
  auto* code = reinterpret_cast<PyCodeObject*>(parts->func_code);
  PyThreadState* thread = PyThreadState_Get();
  RealFrame* frame = take_space(thread, code->co_nlocalsplus + code->co_stacksize + kWordsBeforeSlots + 1);
  if (frame == nullptr) return nullptr;
  frame->code = Py_NewRef(parts->func_code);
  frame->function = Py_NewRef(function);
  frame->globals = parts->func_globals;
  frame->builtins = parts->func_builtins;
  frame->locals = nullptr;
  frame->frame_object = nullptr;
  frame->owner = kOwnedByThread;
#if PY_VERSION_HEX < 0x030C0000
  frame->is_entry = true;
#else
  frame->return_offset = 0;
#endif
  std::fill_n(frame->slots, code->co_nlocalsplus, nullptr);
  frame->stack_top = code->co_nlocalsplus;
  set_position(frame, code->_co_firsttraceable, Position::running);
  frame->previous = innermost(thread);
  set_innermost(thread, frame);
  --recursion_left(thread);
  return frame;
}

int frames_left() { return recursion_left(PyThreadState_Get()); }

PyObject* function_of(RealFrame* frame) { return frame->function; }
PyCodeObject* code_of(RealFrame* frame) { return reinterpret_cast<PyCodeObject*>(frame->code); }
PyObject** slots_of(RealFrame* frame) { return frame->slots; }
int stack_size(RealFrame* frame) { return frame->stack_top - code_of(frame)->co_nlocalsplus; }
void set_stack_size(RealFrame* frame, int size) { frame->stack_top = code_of(frame)->co_nlocalsplus + size; }

void set_position(RealFrame* frame, int unit, Position position) {
#if PY_VERSION_HEX < 0x030D0000
  if (position == Position::next) --unit;
#else
  (void)position;
#endif
  frame->position = reinterpret_cast<CodeUnit*>(code_of(frame)->co_code_adaptive) + unit;
}

int running_unit(RealFrame* frame) { return static_cast<int>(frame->position - reinterpret_cast<CodeUnit*>(code_of(frame)->co_code_adaptive)); }

void add_traceback_entry() {
  // Making a frame object must not meet it. Up to 3.11 it may be a class whose object is made later, which may fail.
#if PY_VERSION_HEX < 0x030C0000
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyFrameObject* frame = PyEval_GetFrame();
  PyErr_Restore(type, value, traceback);
#else
  Ref exception = take_exception();
  PyFrameObject* frame = PyEval_GetFrame();
  set_exception(std::move(exception));
#endif
  if (frame) PyTraceBack_Here(frame);
}

void pop_frame(RealFrame* frame) {
  PyThreadState* thread = PyThreadState_Get();
  set_innermost(thread, frame->previous);
  ++recursion_left(thread);
  Ref exception = PyErr_Occurred() ? take_exception() : Ref();  // finalizers must not meet it
  clear(frame);
  give_space_back(thread, frame);
  if (exception) set_exception(std::move(exception));
}

PyObject* finish_frame(RealFrame* frame) {
  PyThreadState* thread = PyThreadState_Get();
  set_innermost(thread, frame->previous);  // the interpreter links and counts the frame itself
  ++recursion_left(thread);
  PyObject* result = _PyEval_EvalFrameDefault(thread, as_cpython(frame), 0);
#if PY_VERSION_HEX < 0x030C0000
  Ref exception = result ? Ref() : take_exception();
  clear(frame);  // later versions do this in the interpreter
  give_space_back(thread, frame);
  if (exception) set_exception(std::move(exception));
#endif
  return result;
}

}  // namespace tenon::python::compat
