// Loops that are not written out round by round, and arrays that are not taken apart: where so many rounds or pieces would be in one graph, or
// so many variants, the capture ends before them.
#pragma once

#include <span>

#include "python/guards/recorder.h"
#include "python/heap/heap.h"
#include "python/segments/arguments.h"
#include "python/segments/capture_options.h"
#include "python/segments/frame.h"
#include "python/segments/unrolled_loops.h"

namespace tenon::python {

class Evaluator;

/// Asks no other part.
class Loops {
 public:
  Loops(Evaluator& core, Heap& heap, Recorder& recorder, const CaptureOptions& options) : core_(core), heap_(heap), recorder_(recorder), options_(options) {}

  /// Breaks where a call of a library has given more arrays than are written out.
  void require_few_pieces(PyObject* result);
  /// Breaks where a call takes its first argument apart into more arrays than are written out.
  void require_few_pieces_of(PyObject* callable, const Arguments& arguments);
  /// Ends the capture before a loop over a sequence, older than the call, that has made a variant after the other. Nothing of it is guarded.
  void step_over_varying(const Frame& f);
  /// The same before `range(...)` of a loop whose number of rounds varies.
  void step_over_varying_range(std::span<const Ref> bounds);
  void step_loop(const Frame& f);
  /// Of the loops that the capture is in the middle of.
  UnrolledLoops& unrolled() { return unrolled_; }

 private:
  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
  const CaptureOptions& options_;
  UnrolledLoops unrolled_;
};

}  // namespace tenon::python
