// One capture: a call evaluated with stand-ins for tensors, as a dry run that leaves the user's objects as they were.
#pragma once

#include <string>
#include <variant>

#include "python/evaluator/recorder.h"
#include "python/guards/check_program.h"
#include "python/heap/journal.h"
#include "python/heap/result_template.h"

namespace tenon::python {

/// Why and where a capture ended without a segment.
struct CaptureBreak {
  std::string reason;
  std::string hint;
  std::string file;
  int line = 0;
  std::string function;
  std::string code;  // the source text of the line, stripped
  struct Entry {
    std::string file;
    int line = 0;
    std::string function;
    std::string code;
  };
  std::vector<Entry> stack;  // the user's stack, outermost first; the last one is the place of the break
  bool unsettled = false;    // what was read changed under the capture (a module that imports its parts on first use): another one may succeed
};

/// What remains of a capture. The graph is in the Recorder.
struct Segment {
  CheckProgram guards;
  ResultTemplate objects;                  // what a call builds
  std::uint32_t result = 0;                // the node of what it returns
  Replay journal;                          // what it does to older objects, after they are built
  std::vector<std::uint32_t> input_slots;  // for each Recorder::input, in order: where its object is in guards.values()
  std::size_t instructions = 0;            // bytecodes evaluated
};

struct CaptureOptions {
  bool is_compiling = true;  // the answer to torch.compiler.is_compiling() while capturing
  bool self_check = true;    // evaluate all guards right after the rollback; one that fails discards the segment
};

/// Builds the objects of a call, does to older ones what the journal says, and gives the result. Throws PythonError.
Ref complete(const Segment& segment, PyObject* const* values, PyObject* const* outputs);

/// Evaluates `callable(*call)`. Leaves no Python exception set, and every object as it was. The GIL must be held.
std::variant<Segment, CaptureBreak> capture(PyObject* callable, const CallArguments& call, Recorder& recorder,
                                            const CaptureOptions& options = {});

}  // namespace tenon::python
