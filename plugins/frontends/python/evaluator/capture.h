// One capture: a call evaluated with stand-ins for tensors, as a dry run that leaves the user's objects as they were.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "python/evaluator/break_state.h"
#include "python/evaluator/plain_functions.h"
#include "python/evaluator/stepped_loops.h"
#include "python/guards/recorder.h"
#include "python/heap/journal.h"
#include "python/heap/result_template.h"

namespace tenon::python {

/// What remains of a capture. The graph is in the Recorder.
struct Segment {
  CheckProgram guards;
  ResultTemplate objects;                  // what a call builds
  std::uint32_t result = 0;                // the node of what it returns
  Replay journal;                          // what it does to older objects, after they are built
  std::vector<std::uint32_t> input_slots;  // for each Recorder::input, in order: where its object is in guards.values()
  std::size_t instructions = 0;            // bytecodes evaluated
  std::unique_ptr<BreakState> stop;        // where it ends, when it does not return: there is no result then
  std::vector<int> ends;                   // the last instructions of the frames it began in and ended, innermost first
};

struct CaptureOptions {
  bool is_compiling = true;  // the answer to torch.compiler.is_compiling() while capturing
  bool self_check = true;    // evaluate all guards right after the rollback; one that fails discards the segment
  bool leave_loops = false;  // those that go round thousands of times end the segment instead of being written out
  SteppedLoops* stepped = nullptr;  // loops of which each round is a segment; those that are found out are added. Null: none is
  const PlainFunctions* plain = nullptr;  // functions that are called as they are. Null: none is
  std::size_t stop_before = 0;  // ends the segment before this instruction of the outermost run, counted from 1; 0: runs to the return
};

/// What a segment has built.
struct Built {
  Ref result;                // of a segment that returns
  std::vector<Ref> objects;  // of one that ends in a break: by node of its template
};

/// Builds the objects of a call and does to older ones what the journal says. Throws PythonError.
Built complete(const Segment& segment, PyObject* const* values, PyObject* const* outputs);

/// What a capture begins with: a call of a function, or the frames of a continuation and their slots.
struct CaptureStart {
  PyObject* callable = nullptr;
  const ChainStart* chain = nullptr;  // instead of `callable`
  CallArguments values;
};

/// Evaluates from the start on. Leaves every object as it was, and no Python exception set unless it was interrupted. A break says before which
/// instruction another evaluation can end in a segment. The GIL must be held.
std::variant<Segment, CaptureBreak> capture(const CaptureStart& start, Recorder& recorder, const CaptureOptions& options = {});

}  // namespace tenon::python
