// Python functions: made by the program, and called by pushing a frame with their arguments bound.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "python/guards/recorder.h"
#include "python/heap/heap.h"
#include "python/segments/arguments.h"
#include "python/segments/capture_options.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks calls.
class Functions {
 public:
  Functions(Evaluator& core, Heap& heap, Recorder& recorder, const CaptureOptions& options) : core_(core), heap_(heap), recorder_(recorder), options_(options) {}

  std::optional<Ref> call(PyObject* function, Arguments arguments, Completion completion);
  /// Runs a Python function to its end, whatever rule there is for it.
  Ref run(PyObject* function, Arguments arguments);
  /// The frame of a call whose arguments are bound to the function's parameters.
  std::unique_ptr<Frame> bind(PyObject* function, Arguments arguments);
  void op_make_function(Frame& f, const Instruction& i);
  void op_set_function_attribute(Frame& f, const Instruction& i);

 private:
  bool is_as_shipped(PyObject* function, const Arguments& arguments);
  void enter(PyObject* function, Arguments arguments, Completion completion);

  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
  const CaptureOptions& options_;
  std::unordered_map<PyObject*, bool> shipped_;  // by function of a library: whether it still calls what the library has it call
};

}  // namespace tenon::python
