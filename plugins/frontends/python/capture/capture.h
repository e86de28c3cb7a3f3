// One capture: a call evaluated with stand-ins for tensors, as a dry run that leaves the user's objects as they were.
#pragma once

#include <string>
#include <variant>

#include "python/guards/recorder.h"
#include "python/segments/capture_options.h"
#include "python/segments/segment.h"

namespace tenon::python {

/// What a capture begins with: a call of a function, or the frames of a continuation and their slots.
struct CaptureStart {
  PyObject* callable = nullptr;
  const ChainStart* chain = nullptr;  // instead of `callable`
  CallArguments values;
};

/// The Python function that a call of an object runs first: a function or method itself, of others what their type has; empty where that is none.
Ref function_behind(PyObject* callable);

/// The name of a frame's slot in messages and among the sources of a continuation: a variable's, and for what lies on the stack the function's.
std::string name_of_slot(PyCodeObject* code, int slot);

/// Evaluates from the start on. Leaves every object as it was, and no Python exception set unless it was interrupted. A break says before which
/// instruction another evaluation can end in a segment. The GIL must be held.
std::variant<Segment, CaptureBreak> capture(const CaptureStart& start, Recorder& recorder, const CaptureOptions& options = {});

}  // namespace tenon::python
