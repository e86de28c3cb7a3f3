// Frames of CPython itself, made from a state and pushed on the thread's chain, so that whatever runs above them (`sys._getframe`,
// tracebacks, `warnings`, `locals()`) sees what it would see in plain execution.
#pragma once

#include <Python.h>

#include <cstdint>

namespace tenon::python::compat {

/// An interpreter frame on the thread's data stack. Frames are pushed and popped in the order of a stack, on one thread, with the GIL held.
struct RealFrame;

/// What the instruction at a frame's position is to the frame.
enum class Position : std::uint8_t {
  next,     // it runs next
  running,  // it is being run: a call in progress, or what has just raised
};

/// Pushes a frame of a function's code, with all slots unbound and an empty stack, as the innermost of the thread. Null with MemoryError set.
RealFrame* push_frame(PyObject* function);

/// How many more frames the recursion limit allows the thread. Those that are pushed count.
int frames_left();

/// The function and code that a frame was pushed with (borrowed).
PyObject* function_of(RealFrame* frame);
PyCodeObject* code_of(RealFrame* frame);

/// The frame's slots, owned by it: locals, cells and free variables in the order of `co_localsplusnames`, then the stack. Null: unbound, NULL.
PyObject** slots_of(RealFrame* frame);
int stack_size(RealFrame* frame);
void set_stack_size(RealFrame* frame, int size);

/// Sets where a frame is, in code units.
void set_position(RealFrame* frame, int unit, Position position);
/// Where a frame is that has been set to an instruction that runs.
int running_unit(RealFrame* frame);

/// Adds an entry for the innermost frame to the traceback of the exception that is set.
void add_traceback_entry();

/// Takes the innermost frame off and drops what it holds. A frame object that somebody keeps stays readable.
void pop_frame(RealFrame* frame);

/// Runs the innermost frame to its end by CPython's own interpreter, from its position (which must be `next`), and takes it off. Gives what the
/// function returns, or null with the exception set that leaves it.
PyObject* finish_frame(RealFrame* frame);

/// Whether all this works on the CPython that runs, tried out once a process. Where it does not, no program is ever resumed.
bool real_frames_work();

}  // namespace tenon::python::compat
