// The state of one evaluated frame, as data: code, position, locals and stack.
#pragma once

#include <memory>
#include <vector>

#include "python/decode/code.h"
#include "python/guards/source.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// A local, a stack entry, or nothing (unbound, NULL). With `pending` the object is older than the call and has not been looked at:
/// its guard is added when the program consumes it.
struct Slot {
  Ref object;
  SourceId pending;
};

/// What becomes of a frame's result.
enum class Completion : std::uint8_t {
  push,         // pushed on the caller's stack
  discard,      // dropped
  push_object,  // `completion_object` is pushed instead (the instance, after its `__init__`)
  stop,         // a nested run of the evaluator ends with it
};

struct Frame {
  std::shared_ptr<const DecodedCode> code;
  Ref globals, builtins, closure;
  Ref class_namespace;  // class bodies
  std::vector<Slot> locals;
  std::vector<Slot> stack;
  int next = 0;     // instruction to run next
  int current = 0;  // instruction that runs
  Ref keyword_names;
  Completion completion = Completion::push;
  Ref completion_object;
  PyObject* generator = nullptr;  // the generator whose frame this is (borrowed: it is alive while the frame runs)
  bool kept = false;              // it was there when the capture began
  std::size_t work_before = 0;    // Recorder::array_work when it was entered
  std::size_t nodes_before = 0;   // Recorder::recorded then
  Ref saved_exception;            // generators: what was being handled where it was resumed

  const Instruction& instruction() const { return code->instructions[current]; }
};

}  // namespace tenon::python
