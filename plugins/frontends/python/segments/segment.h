// What remains of a capture: guards, the objects that a call builds, what it does to older ones, and where it stops.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "python/guards/later_check.h"
#include "python/heap/journal.h"
#include "python/heap/result_template.h"
#include "python/segments/break_state.h"

namespace tenon::python {

/// The graph is in the Recorder.
struct Segment {
  CheckProgram guards;
  std::shared_ptr<LaterCheck> later;       // what its gradients read once more; null for nothing
  ResultTemplate objects;                  // what a call builds
  std::uint32_t result = 0;                // the node of what it returns
  Replay journal;                          // what it does to older objects, after they are built
  std::vector<std::uint32_t> input_slots;  // for each Recorder::input, in order: where its object is in guards.values()
  struct DroppedGradient {
    std::uint32_t of;  // a slot of guards.values()
    std::optional<std::uint32_t> gradient;  // likewise, where it is an input
  };
  std::vector<DroppedGradient> dropped_gradients;  // Heap::dropped_gradients
  std::size_t instructions = 0;            // bytecodes evaluated
  std::unique_ptr<BreakState> stop;        // where it ends, when it does not return: there is no result then
  std::vector<int> ends;                   // the last instructions of the frames it began in and ended, innermost first
};

/// What a segment has built.
struct Built {
  Ref result;                // of a segment that returns
  std::vector<Ref> objects;  // of one that ends in a break: by node of its template
};

/// Builds the objects of a call and does to older ones what the journal says. Throws PythonError.
Built complete(const Segment& segment, PyObject* const* values, PyObject* const* outputs);

}  // namespace tenon::python
