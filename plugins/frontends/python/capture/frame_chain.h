// Frames of real execution as frames of the evaluator, and back: the beginning and the end of a segment that is not the whole program.
#pragma once

#include "python/capture/capture.h"
#include "python/guards/recorder.h"
#include "python/heap/heap.h"
#include "python/heap/snapshot.h"
#include "python/segments/arguments.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks dropped, exceptions.
class FrameChain {
 public:
  explicit FrameChain(Evaluator& core);

  /// Sets up the frames of a continuation whose slots are `values`.
  void begin(const ChainStart& start, const CallArguments& values);
  /// Describes the frames where the run has stopped.
  /// `start` and `values`: where the run began, if it continued one.
  BreakState describe(Snapshot& snapshot, const ChainStart* start, const CallArguments& values);

 private:
  void note_counters(const Frame& frame);

  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
};

}  // namespace tenon::python
