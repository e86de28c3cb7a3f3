// Generators of the program, whose frames the evaluator runs: objects that C code can iterate.
#pragma once

#include <memory>

#include "python/heap/heap.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

bool is_evaluated_generator(PyObject* object);

/// Makes the object for a frame that has just started.
Ref make_generator(std::unique_ptr<Frame> frame);

/// The suspended frame, or null while it runs and when it has finished.
std::unique_ptr<Frame>& generator_frame(PyObject* generator);

/// Asks iteration.
class Generators {
 public:
  Generators(Evaluator& core, Heap& heap) : core_(core), heap_(heap) {}

  /// Resumes an evaluated generator with a value; empty when it has finished, with its result in `result`.
  Ref resume(PyObject* generator, Ref value, Ref* result = nullptr);
  void op_return_generator(Frame& f);
  void op_yield(Frame& f);
  void op_send(Frame& f, const Instruction& i);
  /// The handler of `yield from` itself, from 3.12 on: what a delegate returned by StopIteration is its value; the rest goes on.
  void op_cleanup_throw();
  Ref throw_into(PyObject* generator, Ref exception, Ref* result = nullptr);

 private:
  bool throw_into_delegate(PyObject* generator, PyObject* exception, Ref* given);

  Evaluator& core_;
  Heap& heap_;
};

}  // namespace tenon::python
