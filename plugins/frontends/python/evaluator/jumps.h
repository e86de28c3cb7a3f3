// Conditional jumps, and the truth that they go by.
#pragma once

#include "python/guards/recorder.h"
#include "python/heap/heap.h"
#include "python/segments/capture_options.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks loops, operators.
class Jumps {
 public:
  Jumps(Evaluator& core, Heap& heap, Recorder& recorder, const CaptureOptions& options) : core_(core), heap_(heap), recorder_(recorder), options_(options) {}

  void op_jump_if(Frame& f, const Instruction& i);
  void jump(Frame& f, std::int32_t target);
  /// Tells the recorder with which outcome of this instruction a jump that comes next goes on.
  void expect_truth(const Frame& f);
  /// The truth that a jump goes by. Where the elements of a tensor decide, and one way does nothing but raise, the other way is assumed.
  bool truth_for_jump(const Frame& f, PyObject* value, const Instruction& jump, std::int32_t after);

 private:
  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
  const CaptureOptions& options_;
};

}  // namespace tenon::python
