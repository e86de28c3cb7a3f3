// The evaluator: runs bytecode over real Python objects, with stand-ins for tensors. One object a capture.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "python/compat/object_layout.h"
#include "python/evaluator/attributes.h"
#include "python/evaluator/building.h"
#include "python/evaluator/builtins.h"
#include "python/evaluator/cached_calls.h"
#include "python/evaluator/calls.h"
#include "python/evaluator/classes.h"
#include "python/evaluator/dropped_objects.h"
#include "python/evaluator/equality.h"
#include "python/evaluator/exceptions.h"
#include "python/evaluator/functions.h"
#include "python/evaluator/generators.h"
#include "python/evaluator/hidden_calls.h"
#include "python/evaluator/items.h"
#include "python/evaluator/iteration.h"
#include "python/evaluator/jumps.h"
#include "python/evaluator/library_states.h"
#include "python/evaluator/loops.h"
#include "python/evaluator/operators.h"
#include "python/evaluator/texts.h"
#include "python/evaluator/variables.h"
#include "python/segments/arguments.h"
#include "python/segments/capture_options.h"
#include "python/segments/frame.h"

namespace tenon::python {

/// Thrown where a signal's handler has raised something (compat::take_interrupt): the run is given up. No C code is between thrower and capture.
struct Interrupted {};

/// The core: frames, their stacks, and the loop over instructions. What the instructions do is said by parts, each of a family, with a state of its
/// own; they ask each other through the core. What needs user code run first runs it to its end in a nested loop, except a plain call, which
/// pushes a frame.
class Evaluator {
 public:
  Evaluator(Recorder& recorder, Heap& heap, const CaptureOptions& options);
  ~Evaluator();

  Heap& heap() { return heap_; }
  Recorder& recorder() { return recorder_; }
  const CaptureOptions& options() const { return options_; }

  // the parts
  Attributes& attributes() { return attributes_; }
  Items& items() { return items_; }
  Operators& operators() { return operators_; }
  Equality& equality() { return equality_; }
  HiddenCalls& hidden_calls() { return hidden_calls_; }
  Texts& texts() { return texts_; }
  Building& building() { return building_; }
  Iteration& iteration() { return iteration_; }
  Loops& loops() { return loops_; }
  Jumps& jumps() { return jumps_; }
  Exceptions& exceptions() { return exceptions_; }
  Calls& calls() { return calls_; }
  CachedCalls& cached_calls() { return cached_calls_; }
  Functions& functions() { return functions_; }
  Classes& classes() { return classes_; }
  Generators& generators() { return generators_; }
  Variables& variables() { return variables_; }
  LibraryStates& library_states() { return library_states_; }
  DroppedObjects& dropped() { return dropped_; }

  /// Runs until the frame at depth `base` has returned, and gives its result. Throws StopHere before the instruction that the options name.
  Ref run(std::size_t base);
  /// Calls and runs to the end.
  Ref call_now(PyObject* callable, Arguments arguments);
  Ref call_now(PyObject* callable, std::initializer_list<PyObject*> arguments);
  /// The innermost run ends with this result.
  void stop_run(Ref result) { stopped_.push_back(std::move(result)); }
  /// How many runs are within each other.
  int nested() const { return nested_; }
  std::size_t instructions() const { return instructions_; }

  const std::vector<std::unique_ptr<Frame>>& frames() const { return frames_; }
  Frame& frame() { return *frames_.back(); }
  void push_frame(std::unique_ptr<Frame> frame);
  /// The innermost frame, which runs no longer.
  std::unique_ptr<Frame> take_frame();
  /// The code of the called function that has recorded the first of the nodes, in no call of its own; empty where there is none.
  Ref first_to_record() const;
  /// The code of the outermost function that has returned, has recorded this node and nothing on arrays; empty where there is none.
  Ref recorded_in(std::size_t node) const;
  /// Adds one that was there when the capture began, before any that is pushed.
  void keep_frame(std::unique_ptr<Frame> frame) {
    frames_.push_back(std::move(frame));
    kept_frames_ = frames_.size();
  }
  /// The last instructions of those frames that were there at the beginning and have ended, innermost first.
  const std::vector<int>& ends() const { return ends_; }
  /// A local variable of a frame, borrowed, which is guarded then; null where it is unbound.
  PyObject* local(Frame& f, int index) { return guarded(f.locals[index]); }
  /// Tells the recorder where the program is.
  void mark_position();

  // the stack of the innermost frame
  void push(Ref object) { frame().stack.push_back({std::move(object), {}}); }
  Ref force(Slot slot) {
    if (!slot.pending) return std::move(slot.object);
    return heap_.enter(slot.pending, slot.object.get());
  }
  Slot pop_slot() {
    Slot slot = std::move(frame().stack.back());
    frame().stack.pop_back();
    return slot;
  }
  Ref pop() { return force(pop_slot()); }
  /// The object `depth` entries below the top (1 is the top), guarded, left where it is.
  PyObject* peek(int depth) { return guarded(frame().stack[frame().stack.size() - depth]); }
  std::vector<Ref> pop_many(int count);

  bool is_stand_in(PyObject* object) { return heap_.is_stand_in(object); }
  /// The type that the program must see.
  PyTypeObject* visible_type(PyObject* object) {
    if (is_stand_in(object) || heap_.is_number(object)) return recorder_.apparent_type(object);
    if (PyTypeObject* type = type_of_index_iterator(object)) return type;
    return is_evaluated_generator(object) ? &PyGen_Type : Py_TYPE(object);
  }

  /// Something happened where no exception can be thrown (a deallocation) that this capture cannot follow: it breaks before that.
  void fail_later(const char* reason) {
    late_failure_ = reason;
    late_failure_at_ = heap_.now;
  }
  const char* late_failure() const { return late_failure_; }
  std::size_t late_failure_at() const { return late_failure_at_; }

 private:
  friend struct NestedRun;

  PyObject* guarded(Slot& slot) {
    if (slot.pending) slot = {heap_.enter(slot.pending, slot.object.get()), {}};
    return slot.object.get();
  }
  void step();
  void unwind();
  bool somebody_handles(std::size_t base) const;
  bool interrupted() const;
  void require_no_stand_in_in_text();
  void finish(Ref result);
  bool may_be_plain(const Frame& frame, std::size_t depth) const;

  Recorder& recorder_;
  Heap& heap_;
  const CaptureOptions& options_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Ref> stopped_;  // results of nested runs
  std::size_t instructions_ = 0;
  int nested_ = 0;
  const char* late_failure_ = nullptr;
  std::size_t late_failure_at_ = 0;
  std::vector<int> ends_;
  struct Recording {
    Ref code;
    std::size_t begin, end;  // nodes
  };
  std::vector<Recording> returned_;  // of functions that have recorded something, and nothing on arrays
  std::size_t kept_frames_ = 0;  // those that were there when the capture began

  Attributes attributes_{*this, heap_, recorder_};
  Items items_{*this, heap_};
  Operators operators_{*this, heap_, recorder_};
  Equality equality_{*this, heap_};
  HiddenCalls hidden_calls_{*this, heap_, recorder_};
  Texts texts_{*this, heap_, recorder_};
  Building building_{*this, heap_, recorder_};
  Iteration iteration_{*this, heap_, recorder_, options_};
  Loops loops_{*this, heap_, recorder_, options_};
  Jumps jumps_{*this, heap_, recorder_, options_};
  Exceptions exceptions_{*this, heap_};
  Calls calls_{*this, heap_, recorder_};
  CachedCalls cached_calls_{*this, heap_};
  Functions functions_{*this, heap_, recorder_, options_};
  Classes classes_{*this, heap_, recorder_};
  Generators generators_{*this, heap_};
  Variables variables_{*this, heap_};
  LibraryStates library_states_{*this, heap_};
  DroppedObjects dropped_{frames_, heap_};
};

/// Ends the run before the instruction that `CaptureOptions::stop_before` names. Never crosses a C frame: only the outermost run throws it.
struct StopHere {};

/// The evaluator of the capture that runs on this thread, or null. Callbacks from C code find it here.
Evaluator* current_evaluator();

}  // namespace tenon::python
