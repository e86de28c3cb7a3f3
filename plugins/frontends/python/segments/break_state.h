// Where a segment leaves the program when it ends in a graph break, and where a continuation begins.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "python/guards/check_program.h"
#include "python/objects/hints.h"
#include "python/segments/frame.h"
#include "python/segments/user_stack.h"

namespace tenon::python {

/// Why and where a capture ended before the program did.
struct CaptureBreak {
  std::string reason;
  std::string hint = kOutsideHint;
  std::vector<StackEntry> stack;  // the user's stack, outermost first; the last one is the place of the break
  std::size_t stop_before = 0;  // the outermost run's instruction (counted from 1) before which a segment can end; 0: none
  bool leaves = false;       // what follows in the innermost frame is better left to plain Python
  bool on_elements = false;  // a branch goes by elements, which constants instead of numbers would seldom say
  bool reads_elements = false;  // that the graph computes: the instruction gives another number at every call
  bool draws = false;           // a generator that no graph follows does, with the same consequence
  bool wants_numbers = false;   // that the graph computes: once they are there the instruction itself can be captured
  bool steps = false;        // a loop is gone through round by round, whatever numbers are taken as
  bool raises = false;       // the program itself raises an exception here that it does not handle
  bool interrupted = false;  // by what a signal's handler raised, which is kept (compat::take_interrupt), or by a KeyboardInterrupt, which is set
  bool calls_plain = false;  // a function that is called as it is
  Ref drawn_in;              // for a number that a called function has drawn and nothing on arrays: its code
  bool unsettled = false;    // what was read changed under the capture (a module that imports its parts on first use): another one may succeed
};

/// The frames at which a continuation begins, outermost first. Their slots are the values of its call, frame by frame: locals, stack, and the
/// completion object where the frame has one; null where a slot is unbound.
struct ChainStart {
  struct Frame {
    PyObject* function;  // of the frame's code and globals
    int instruction;     // the innermost: runs next; the others: the call in progress
    Completion completion;
    int stack_size;
  };
  std::vector<Frame> frames;
};

/// The frames at the end of a segment that stops before an instruction. Objects are nodes of the segment's template.
struct BreakState {
  static constexpr std::uint32_t kUnbound = ~0u;

  struct Write {
    std::uint32_t slot;  // locals, then stack
    std::uint32_t node;  // or kUnbound
  };
  struct FrameState {
    bool kept = false;   // it was there when the segment began: only the slots in `writes` have changed
    Ref function;        // new frames: a function of the frame's code and globals
    int instruction = 0;
    Completion completion = Completion::push;
    std::uint32_t completion_object = kUnbound;  // node
    int stack_size = 0;
    std::vector<Write> writes;
  };
  std::vector<FrameState> frames;
  /// How many frames there are more than where the segment began.
  std::size_t new_frames() const {
    std::size_t count = 0;
    for (const FrameState& frame : frames) count += !frame.kept;
    return count;
  }
  std::optional<std::uint32_t> handled;  // the exception that is being handled, as a node or kUnbound, if that is another than before
  Ref keyword_names;                     // of the call that runs next, or empty
  CaptureBreak why;
};

}  // namespace tenon::python
